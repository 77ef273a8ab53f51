// SPDX-License-Identifier: GPL-2.0
#include "sample_place.h"

#include <glib.h>
#include <string.h>

#include "names.h"

const char *sample_place_name(enum place place)
{
	static const char *const names[] = { "memset", "calloc_memset", "allocator", "fault",
					      "map", "read", "kernel", "user" };

	return names[place];
}

void sample_judge_prepare(struct sample_judge *judge, struct symbolizer *symbolizer)
{
	static const char *const functions[] = { "handle_mm_fault", "exc_page_fault",
						 "asm_exc_page_fault" };
	size_t i;

	G_STATIC_ASSERT(G_N_ELEMENTS(functions) == G_N_ELEMENTS(judge->fault_code));
	for (i = 0; i < G_N_ELEMENTS(functions); i++)
		symbolizer_kernel_function(symbolizer, functions[i], &judge->fault_code[i].start,
					   &judge->fault_code[i].end);
}

static bool in_fault_code(const struct sample_judge *judge, const struct memtoll_sample *sample)
{
	size_t i, k;

	for (i = 0; i < sample->kernel_frames && i < MEMTOLL_KERNEL_DEPTH; i++)
		for (k = 0; k < G_N_ELEMENTS(judge->fault_code); k++)
			if (sample->kernel[i] >= judge->fault_code[k].start &&
			    sample->kernel[i] < judge->fault_code[k].end)
				return true;
	return false;
}

enum place sample_place(const struct sample_judge *judge, const struct memtoll_sample *sample)
{
	if (!(sample->flags & SAMPLE_USER)) {
		if (in_fault_code(judge, sample))
			return PLACE_FAULT;
		if (sample->map_fn)
			return PLACE_MAP;
		if (sample->flags & SAMPLE_READ)
			return PLACE_READ;
		return sample->in_fn ? PLACE_ALLOCATOR : PLACE_KERNEL;
	}
	if (sample->flags & SAMPLE_MEMSET) {
		if (sample->in_fn == FN_CALLOC)
			return PLACE_CALLOC_MEMSET;
		if (!sample->in_fn)
			return PLACE_MEMSET;
	}
	return sample->in_fn ? PLACE_ALLOCATOR : PLACE_USER;
}

unsigned int sample_fn_of_symbol(const char *symbol)
{
	unsigned int fn;

	if (g_str_has_prefix(symbol, "__libc_"))
		symbol += strlen("__libc_");
	for (fn = FN_MALLOC; fn < FN_COUNT; fn++)
		if (!strcmp(symbol, fn_name(fn)))
			return fn;
	return FN_NONE;
}
