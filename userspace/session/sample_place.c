// SPDX-License-Identifier: GPL-2.0
#include "session/sample_place.h"

#include <glib.h>
#include <string.h>

#include "events/names.h"

const char *sample_place_name(enum place place)
{
	static const char *const names[] = { "memset", "calloc_memset", "allocator", "fault", "map",
					     "read",   "probe",		"kernel",    "user",  "copy" };

	return names[place];
}

/* As many as sample_judge.code holds. The ones of a fault are its first. */
#define FAULT_CODE 3

void sample_judge_prepare(struct sample_judge *judge)
{
	static const char *const names[] = {
		"handle_mm_fault", "exc_page_fault", "asm_exc_page_fault",
		/* The breakpoint, the step over the instruction it replaced, the way back. */
		"asm_exc_int3", "exc_int3", "asm_exc_debug", "exc_debug_user",
		"uprobe_notify_resume", "__x64_sys_uretprobe", "__x64_sys_uprobe",
		"__do_sys_uretprobe"
	};
	size_t i;

	G_STATIC_ASSERT(G_N_ELEMENTS(names) == G_N_ELEMENTS(judge->code));
	for (i = 0; i < G_N_ELEMENTS(names); i++)
		judge->code[i].name = names[i];
	kallsyms_find(NULL, judge->code, G_N_ELEMENTS(names));
}

static bool in_code(const struct kernel_function *code, size_t count,
		    const struct memtoll_sample *sample)
{
	size_t i, k;

	for (i = 0; i < sample->kernel_frames && i < MEMTOLL_KERNEL_DEPTH; i++)
		for (k = 0; k < count; k++)
			if (sample->kernel[i] >= code[k].start && sample->kernel[i] < code[k].end)
				return true;
	return false;
}

enum place sample_place(const struct sample_judge *judge, const struct memtoll_sample *sample,
			enum stored stored)
{
	if (!(sample->flags & SAMPLE_USER)) {
		if (in_code(judge->code, FAULT_CODE, sample))
			return PLACE_FAULT;
		if (sample->flags & SAMPLE_PROBE ||
		    in_code(judge->code + FAULT_CODE, G_N_ELEMENTS(judge->code) - FAULT_CODE,
			    sample))
			return PLACE_PROBE;
		if (sample->map_fn)
			return PLACE_MAP;
		if (sample->flags & SAMPLE_READ)
			return PLACE_READ;
		return sample->in_fn ? PLACE_ALLOCATOR : PLACE_KERNEL;
	}
	if (sample->flags & SAMPLE_PROBE)
		return PLACE_PROBE;
	if (sample->in_fn == FN_CALLOC && (sample->flags & SAMPLE_MEMSET || stored == STORED_ZERO))
		return PLACE_CALLOC_MEMSET;
	if (sample->in_fn)
		return PLACE_ALLOCATOR;
	return stored == STORED_ZERO ? PLACE_MEMSET : stored == STORED_COPY ? PLACE_COPY : PLACE_USER;
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
