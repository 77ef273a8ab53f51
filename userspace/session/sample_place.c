// SPDX-License-Identifier: GPL-2.0
#include "session/sample_place.h"

#include <glib.h>
#include <string.h>

#include "events/names.h"
#include "host/kallsyms.h"

const char *sample_place_name(enum place place)
{
	static const char *const names[] = { "memset", "calloc_memset", "allocator", "fault", "map",
					     "read",   "probe",		"kernel",    "user" };

	return names[place];
}

static void code_find(const struct kallsyms *table, const char *const *names, size_t count,
		      struct kernel_code *code)
{
	size_t i;

	for (i = 0; i < count; i++)
		kallsyms_function(table, names[i], &code[i].start, &code[i].end);
}

void sample_judge_prepare(struct sample_judge *judge)
{
	static const char *const fault[] = { "handle_mm_fault", "exc_page_fault",
					     "asm_exc_page_fault" };
	/* The breakpoint, the step over the instruction it replaced, and the way back. */
	static const char *const probe[] = { "asm_exc_int3",	     "exc_int3",
					     "asm_exc_debug",	     "exc_debug_user",
					     "uprobe_notify_resume", "__x64_sys_uretprobe",
					     "__x64_sys_uprobe",     "__do_sys_uretprobe" };
	struct kallsyms *table = kallsyms_read(NULL);

	G_STATIC_ASSERT(G_N_ELEMENTS(fault) == G_N_ELEMENTS(judge->fault));
	G_STATIC_ASSERT(G_N_ELEMENTS(probe) == G_N_ELEMENTS(judge->probe));
	if (!table)
		return;
	code_find(table, fault, G_N_ELEMENTS(fault), judge->fault);
	code_find(table, probe, G_N_ELEMENTS(probe), judge->probe);
	kallsyms_free(table);
}

static bool in_code(const struct kernel_code *code, size_t count,
		    const struct memtoll_sample *sample)
{
	size_t i, k;

	for (i = 0; i < sample->kernel_frames && i < MEMTOLL_KERNEL_DEPTH; i++)
		for (k = 0; k < count; k++)
			if (sample->kernel[i] >= code[k].start && sample->kernel[i] < code[k].end)
				return true;
	return false;
}

enum place sample_place(const struct sample_judge *judge, const struct memtoll_sample *sample)
{
	if (!(sample->flags & SAMPLE_USER)) {
		if (in_code(judge->fault, G_N_ELEMENTS(judge->fault), sample))
			return PLACE_FAULT;
		if (sample->flags & SAMPLE_PROBE ||
		    in_code(judge->probe, G_N_ELEMENTS(judge->probe), sample))
			return PLACE_PROBE;
		if (sample->map_fn)
			return PLACE_MAP;
		if (sample->flags & SAMPLE_READ)
			return PLACE_READ;
		return sample->in_fn ? PLACE_ALLOCATOR : PLACE_KERNEL;
	}
	if (sample->flags & SAMPLE_PROBE)
		return PLACE_PROBE;
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
