// SPDX-License-Identifier: GPL-2.0
/* libpasses.so: between code that is made at run time and the allocator, or its caller. */
#include "passes.h"

/* Stores that keep the calls from being jumps. */
void *volatile passes_sink;

void *pass_on(size_t count, size_t size)
{
	void *block = calloc(count, size); /* SITE passes */

	passes_sink = block;
	return block;
}

void *call_back(made_fn *made, size_t count, size_t size)
{
	void *block = made(count, size, calloc); /* SITE calls back */

	passes_sink = block;
	return block;
}
