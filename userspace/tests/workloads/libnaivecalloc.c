// SPDX-License-Identifier: GPL-2.0
/*
 * libnaivecalloc.so: a preloaded calloc that is malloc and memset (casebook, entry 2). On fresh
 * mappings the kernel clears every page and the memset clears it again.
 */
#include "naive.h"

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size)
{
	size_t bytes;
	void *block;

	if (__builtin_mul_overflow(count, size, &bytes))
		return NULL;
	block = malloc(bytes);
	if (block)
		naive_clear(block, bytes);
	return block;
}
