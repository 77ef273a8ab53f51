/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fault_class.bpf.h: what a fault does, by its page-table entry and its area. Included by
 * fault.bpf.c alone.
 */
#ifndef MEMTOLL_FAULT_CLASS_BPF_H
#define MEMTOLL_FAULT_CLASS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/config.h"
#include "wire/faults.h"
#include "wire/pages.h"
#include "state/losses.bpf.h"
#include "state/open_fault.bpf.h"
#include "memory/area.bpf.h"
#include "memory/page_state.bpf.h"
#include "memory/pagetable.bpf.h"

/*
 * Swap entries keep the type in the top 5 bits; the highest types are not devices (swapops.h). The
 * first of them is memory that failed; then come pages that are being moved, to other places or to a
 * GPU and back; the last one says what must not be there (a guard, since 6.13) or is somebody else's
 * to bring (5.19).
 *
 * The numbers are those of 5.19 to 6.14 with CONFIG_MEMORY_FAILURE and CONFIG_DEVICE_PRIVATE, as
 * distributions have it. Types end with 31 everywhere, so that on other kernels of 5.19 and later
 * pages that are being moved are found as well, but memory that failed, which is a signal anyway,
 * counts as one. Before 5.19 so it does, too, and the last type is other: a page at a GPU, or without
 * CONFIG_DEVICE_PRIVATE one that is being moved and was writable.
 */
#define SWAP_TYPE_SHIFT 59
#define SWAP_TYPE_SPECIAL 23
#define SWAP_TYPE_MOVED 24
#define SWAP_TYPE_MARKER 31

/* Neither does the kernel clear anything where the access is not allowed: it sends a signal. */
static __always_inline bool is_forbidden(const struct area_cache *area, bool write)
{
	if (!area->area_at)
		return false;
	return write ? !(area->flags & VM_WRITE_FLAG) : !(area->flags & VM_ACCESS_FLAGS);
}

/*
 * Whether a fault on an empty entry is for a userfaultfd's handler: of a page that is nowhere, or
 * that only the page cache has. For write protection alone empty entries are filled as ever.
 */
static __always_inline bool handler_is_asked(const struct area_cache *area, int cached)
{
	__u64 flags = VM_UFFD_MISSING_FLAG;

	if (!area->userfault)
		return false;
	if (area->hugetlb)
		flags |= VM_UFFD_MINOR_FLAGS;
	else if (cached == CACHED_FOLIO)
		flags = VM_UFFD_MINOR_FLAGS;
	return area->flags & flags;
}

/* fallocate() makes pages of shared memory without content: the first fault on one clears it. */
static __always_inline bool has_content(__u64 folio)
{
	__u64 flags;

	return bpf_probe_read_kernel(&flags, sizeof(flags), (void *)folio) ||
	       (flags & 1ULL << bpf_core_enum_value(enum pageflags, PG_uptodate));
}

/*
 * The page-table entry says nothing. The page cache of the file behind the area does: there is the
 * page itself, or none. Of shared memory it may have the page's place on swap, of the same form as
 * in a page-table entry but for the offset; of other files what is remembered of a page that was
 * pushed out.
 */
static __always_inline __u8 class_of_empty(const struct area_cache *area, struct open_fault *fault,
					   bool write)
{
	bool copies = write && !area->shared;
	int cached = CACHED_NOTHING;
	__u64 entry = 0;

	if (is_forbidden(area, write))
		return FAULT_FORBIDDEN;
	if (area->area == AREA_DEVICE)
		return FAULT_OTHER;
	if (area->mapping && !area->hugetlb && (area->tmpfs || !copies))
		cached = page_cache_find(area->mapping,
					 fault->address / MEMTOLL_PAGE_SIZE + area->offset, &entry);
	if (cached != CACHED_VALUE && handler_is_asked(area, cached))
		return FAULT_USER;
	/* Cleared when taken from the pool, whether read or written. */
	if (area->hugetlb)
		return FAULT_ZERO_HUGE;
	if (area->mapping && (area->tmpfs || !copies)) {
		if (cached == CACHED_VALUE && !area->tmpfs)
			return FAULT_FILE_AGAIN;
		if (cached == CACHED_VALUE) {
			fault->walked.entry = entry;
			return FAULT_SWAP;
		}
		if (area->tmpfs && !copies &&
		    (cached == CACHED_NOTHING || (cached == CACHED_FOLIO && !has_content(entry))))
			return FAULT_SHARED_ZERO;
	}
	switch (area->area) {
	case AREA_SHARED:
		return FAULT_SHARED;
	case AREA_FILE:
		return copies ? FAULT_COW : FAULT_FILE;
	default:
		return write ? FAULT_ZERO : FAULT_ZERO_READ;
	}
}

/* Neither on swap nor in memory. */
static __always_inline __u8 class_of_special(const struct area_cache *area, __u32 type, bool write)
{
	/* A page that is being moved; or the mark of userfaultfd where there is no page. */
	if (write && area->userfault && area->flags & VM_UFFD_WP_FLAG)
		return FAULT_USER;
	return type >= SWAP_TYPE_MOVED && type < SWAP_TYPE_MARKER ? FAULT_MOVED : FAULT_OTHER;
}

static __always_inline __u8 classify(int end, struct open_fault *fault,
				     const struct area_cache *area, bool write)
{
	const struct walked *walked = &fault->walked;
	__u64 pfn = (walked->entry & PTE_PFN_MASK) >> 12;

	if (end == WALK_FAILED) {
		lose(LOST_WALK_FAILED, 1);
		return FAULT_OTHER;
	}
	if (end == WALK_NONE || end == WALK_NO_TABLE)
		return class_of_empty(area, fault, write);
	if (!(walked->entry & PTE_PRESENT)) {
		if (walked->entry & PTE_PROT_NONE)
			return FAULT_OTHER;
		if (walked->entry >> SWAP_TYPE_SHIFT >= SWAP_TYPE_SPECIAL)
			return class_of_special(area, walked->entry >> SWAP_TYPE_SHIFT, write);
		return FAULT_SWAP;
	}
	if (!write || area->area == AREA_DEVICE)
		return FAULT_OTHER;
	if (area_forbids_writing(area, fault->address))
		return FAULT_FORBIDDEN;
	if (walked->entry & PTE_USERFAULT)
		return FAULT_USER;
	if (end == WALK_ENTRY && cfg_zero_pfn && pfn == cfg_zero_pfn)
		return FAULT_ZERO_UPGRADE;
	if (area->shared)
		return area->area == AREA_SHARED ? FAULT_SHARED : FAULT_FILE;
	return FAULT_COW;
}

/*
 * The same, not inlined: what follows is verified once then, and not again for each way to a class,
 * which took more than twice as long to load.
 */
int fault_classify(int end, struct open_fault *fault, const struct area_cache *area, bool write)
{
	return fault && area ? classify(end, fault, area, write) : FAULT_OTHER;
}

/* Classes that only the end of a fault distinguishes: at its begin they continue the same run. */
static __always_inline __u8 merge_class(__u8 fault_class)
{
	switch (fault_class) {
	case FAULT_REUSE:
	case FAULT_COW_MERGED:
		return FAULT_COW;
	case FAULT_FILE_AGAIN:
		return FAULT_FILE;
	case FAULT_ZERO_HUGE:
	case FAULT_ZERO_MTHP:
		return FAULT_ZERO;
	case FAULT_SWAP_ZSWAP:
	case FAULT_SWAP_ZERO:
		return FAULT_SWAP;
	default:
		return fault_class;
	}
}

/* The slowest source decides: a fault waits for its device, whatever else came with it. */
static __always_inline __u8 swap_source(const struct open_fault *fault)
{
	if (fault->in_device || (!fault->in_zswap && !fault->in_zero))
		return FAULT_SWAP;
	return fault->in_zswap ? FAULT_SWAP_ZSWAP : FAULT_SWAP_ZERO;
}

#endif /* MEMTOLL_FAULT_CLASS_BPF_H */
