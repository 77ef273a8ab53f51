/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mapped_heaps.h: where the program break cannot grow, as something is mapped in its way, or as all
 * is to be huge pages (glibc.malloc.hugetlb=2) and there are none, the main arena goes on in
 * mappings of its own (sysmalloc_mmap_fallback(), malloc/malloc.c). Each is filled by its chunks:
 * the last one is the arena's top, or two fenceposts.
 */
#ifndef MEMTOLL_MAPPED_HEAPS_H
#define MEMTOLL_MAPPED_HEAPS_H

#include "hold/malloc_state.h"

/*
 * Add them to the heaps found, at their end. wanted: bytes that the arena has of them. Bytes that
 * were not found: their headers are swapped out, or did not fit.
 */
uint64_t mapped_heaps_add(const struct memory_view *view, const struct maps *maps, uint64_t wanted,
			  struct malloc_heaps *found);

#endif /* MEMTOLL_MAPPED_HEAPS_H */
