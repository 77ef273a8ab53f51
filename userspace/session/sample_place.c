// SPDX-License-Identifier: GPL-2.0
#include "session/sample_place.h"

#include <glib.h>
#include <string.h>
#include <sys/syscall.h>

#include "events/names.h"

const char *sample_place_name(enum place place)
{
	static const char *const names[] = { "memset", "calloc_memset", "allocator", "fault",
					     "map",    "read",		"probe",     "kernel",
					     "user",   "copy",		"populate",  "pages",
					     "clear" };

	return names[place];
}

/* Code of the kernel by what it does; in_code() takes a range of them. */
static const char *const kernel_names[] = {
	[CODE_FAULT] = "handle_mm_fault",
	/* Of a fault that the program takes itself. */
	[CODE_ENTRY] = "exc_page_fault",
	"asm_exc_page_fault",
	/* The breakpoint, the step over the instruction it replaced, the way back. */
	[CODE_PROBE] = "asm_exc_int3",
	"exc_int3",
	"asm_exc_debug",
	"exc_debug_user",
	"uprobe_notify_resume",
	"__x64_sys_uretprobe",
	"__x64_sys_uprobe",
	"__do_sys_uretprobe",
	/* Where a fault clears no page. */
	[CODE_NO_CLEAR] = "filemap_fault",
	"filemap_map_pages",
	"do_swap_page",
	"do_wp_page",
	/*
	 * What frees the pages of a file or of a process, what makes those of shared memory, and
	 * what copies the page tables of a process for its child.
	 */
	[CODE_PAGES] = "exit_mmap",
	"unmap_vmas",
	"tlb_finish_mmu",
	"truncate_inode_pages_range",
	"shmem_undo_range",
	"shmem_fallocate",
	"shmem_get_folio_gfp",
	"dup_mmap",
	"copy_page_range",
	/* What fills the program's memory with zeros for a read: of /dev/zero, of a hole. */
	[CODE_CLEAR] = "iov_iter_zero",
	"read_zero",
	/* What clears a page, by whichever instructions this processor has for it. */
	[CODE_CLEAR_PAGE] = "clear_page_erms",
	"clear_page_rep",
	"clear_page_orig",
	"clear_page",
};

void sample_judge_prepare(struct sample_judge *judge)
{
	size_t i;

	G_STATIC_ASSERT(G_N_ELEMENTS(kernel_names) == CODE_COUNT);
	for (i = 0; i < CODE_COUNT; i++)
		judge->code[i].name = kernel_names[i];
	kallsyms_find_once(NULL, judge->code, CODE_COUNT);
}

/* Whether a frame of the kernel's stack lies in the functions from `first` to the one before `end`. */
static bool in_code(const struct sample_judge *judge, enum kernel_code first, enum kernel_code end,
		    const struct memtoll_sample *sample)
{
	const struct kernel_function *code = judge->code;
	size_t i, k;

	for (i = 0; i < sample->kernel_frames && i < MEMTOLL_KERNEL_DEPTH; i++)
		for (k = first; k < end; k++)
			if (sample->kernel[i] >= code[k].start && sample->kernel[i] < code[k].end)
				return true;
	return false;
}

/* In a read of a file that is looked at, or that those which are speak for. */
static bool is_reading(const struct memtoll_sample *sample)
{
	return sample->flags & (SAMPLE_READ | SAMPLE_SPOKEN);
}

/*
 * A fault that the kernel takes for the program: get_user_pages(), for ioctl, process_vm_writev,
 * io_uring_register. In a mapping call or a read that is watched it is part of that one's record.
 */
static bool is_populating(const struct sample_judge *judge, const struct memtoll_sample *sample)
{
	return !sample->map_fn && !is_reading(sample) && judge->code[CODE_ENTRY].end &&
	       !in_code(judge, CODE_ENTRY, CODE_PROBE, sample) &&
	       !in_code(judge, CODE_NO_CLEAR, CODE_PAGES, sample);
}

/* mprotect has no record of its own, unless it faults memory in: it rewrites page tables. */
static bool is_protecting(const struct memtoll_sample *sample)
{
	return sample->syscall == SYS_mprotect || sample->syscall == SYS_pkey_mprotect;
}

enum place sample_place(const struct sample_judge *judge, const struct memtoll_sample *sample,
			enum stored stored, bool in_allocator)
{
	if (!(sample->flags & SAMPLE_USER)) {
		if (in_code(judge, CODE_FAULT, CODE_PROBE, sample))
			return is_populating(judge, sample) ? PLACE_POPULATE : PLACE_FAULT;
		if (sample->flags & SAMPLE_PROBE ||
		    in_code(judge, CODE_PROBE, CODE_NO_CLEAR, sample))
			return PLACE_PROBE;
		if (is_protecting(sample) && !in_allocator)
			return PLACE_PAGES;
		if (sample->map_fn)
			return PLACE_MAP;
		if (is_reading(sample))
			return PLACE_READ;
		if (in_code(judge, CODE_PAGES, CODE_CLEAR, sample))
			return PLACE_PAGES;
		if (in_code(judge, CODE_CLEAR, CODE_CLEAR_PAGE, sample))
			return PLACE_CLEAR;
		return in_allocator ? PLACE_ALLOCATOR : PLACE_KERNEL;
	}
	if (sample->flags & SAMPLE_PROBE)
		return PLACE_PROBE;
	if (sample->in_fn == FN_CALLOC && (sample->flags & SAMPLE_MEMSET || stored == STORED_ZERO))
		return PLACE_CALLOC_MEMSET;
	if (in_allocator)
		return PLACE_ALLOCATOR;
	return stored == STORED_ZERO ? PLACE_MEMSET :
	       stored == STORED_COPY ? PLACE_COPY :
				       PLACE_USER;
}

bool sample_clears_page(const struct sample_judge *judge, const struct memtoll_sample *sample)
{
	return !(sample->flags & SAMPLE_USER) &&
	       in_code(judge, CODE_CLEAR_PAGE, CODE_COUNT, sample);
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
