/* SPDX-License-Identifier: GPL-2.0 */
/*
 * page_cache.bpf.h: what a file's page cache has of a page.
 *
 * A page-table entry that is empty says nothing of it. The file's mapping does: an xarray
 * (include/linux/xarray.h, lib/xarray.c) by the page's number in the file. It is made to be walked
 * under RCU, and BPF programs run under RCU. Nothing is locked: an answer may be a moment old.
 *
 * Part of page_state.bpf.c: libbpf's linker takes the kernel's cast from one object only.
 */
#ifndef MEMTOLL_PAGE_CACHE_BPF_H
#define MEMTOLL_PAGE_CACHE_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "state/losses.bpf.h"
#include "memory/page_state.bpf.h"
#include "memory/pagetable.bpf.h"

/* A slot of a node has 6 bits of the index (XA_CHUNK_SHIFT, without CONFIG_BASE_SMALL). */
#define XARRAY_BITS 6
#define XARRAY_SLOTS 64
#define XARRAY_LEVELS 6 /* 2^48 bytes */

/* The two lowest bits of an entry: x1 a value, 00 a pointer, 10 the array's own. */
#define XARRAY_VALUE 1ULL
#define XARRAY_KIND 3ULL
#define XARRAY_INTERNAL 2ULL
/* Of those, above it a pointer to a node, below it the number of the slot that has the entry. */
#define XARRAY_NODE 4096ULL
#define XARRAY_SIBLING ((XARRAY_SLOTS - 1) << 2 | XARRAY_INTERNAL)

static __always_inline bool xarray_is_node(__u64 entry)
{
	return (entry & XARRAY_KIND) == XARRAY_INTERNAL && entry > XARRAY_NODE;
}

static __always_inline struct xa_node *xarray_node(__u64 entry)
{
	return (struct xa_node *)(entry - XARRAY_INTERNAL);
}

static __always_inline __u64 xarray_slot(struct xa_node *node, __u64 slot)
{
	return kernel_word((__u64)&node->slots + (slot & (XARRAY_SLOTS - 1)) * sizeof(__u64));
}

/* The entry of an index; one of the array's own where the way to it is not known. */
static __always_inline __u64 xarray_entry(struct xarray *array, __u64 index)
{
	__u64 entry = kernel_word((__u64)&array->xa_head);
	struct xa_node *node;
	__u8 shift = 0;
	int level;

	if (!xarray_is_node(entry))
		return index ? 0 : entry;
	bpf_core_read(&shift, sizeof(shift), &xarray_node(entry)->shift);
	if (shift > (XARRAY_LEVELS - 1) * XARRAY_BITS)
		return XARRAY_INTERNAL;
	if (index >> shift >= XARRAY_SLOTS)
		return 0;
	for (level = 0; level < XARRAY_LEVELS; level++) {
		node = xarray_node(entry);
		/* Else it was freed and is part of another array by now, or cannot be read. */
		if (kernel_word((__u64)&node->array) != (__u64)array)
			return XARRAY_INTERNAL;
		entry = xarray_slot(node, index >> shift);
		/* A folio of several pages lies in one slot, to which its others point. */
		if ((entry & XARRAY_KIND) == XARRAY_INTERNAL && entry < XARRAY_SIBLING)
			entry = xarray_slot(node, entry >> 2);
		if (!xarray_is_node(entry) || shift < XARRAY_BITS)
			return entry;
		shift -= XARRAY_BITS;
	}
	return XARRAY_INTERNAL;
}

/*
 * What the page cache of a mapping (struct address_space) has of page `index`, and the entry. A
 * value is, of shared memory, the page's place on swap, the swap cache included; of another file,
 * what is remembered of a page that was pushed out.
 */
int page_cache_find(__u64 mapping, __u64 index, __u64 *found)
{
	struct address_space *space = (struct address_space *)mapping;
	__u64 entry = XARRAY_INTERNAL;

	if (!found)
		return CACHED_UNKNOWN;
	if (space)
		entry = xarray_entry(&space->i_pages, index);
	*found = entry;
	if (!entry)
		return CACHED_NOTHING;
	if (entry & XARRAY_VALUE)
		return CACHED_VALUE;
	if (!(entry & XARRAY_KIND))
		return CACHED_FOLIO;
	lose(LOST_PAGE_CACHE, 1);
	return CACHED_UNKNOWN;
}

#endif /* MEMTOLL_PAGE_CACHE_BPF_H */
