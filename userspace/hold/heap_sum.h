/* SPDX-License-Identifier: GPL-2.0 */
/*
 * heap_sum.h: what the walk found, by arena; and what of it malloc_trim(0) would give back, by the
 * rules of mtrim() and systrim() (malloc/malloc.c).
 */
#ifndef MEMTOLL_HEAP_SUM_H
#define MEMTOLL_HEAP_SUM_H

#include "hold/cached_chunks.h"
#include "hold/heap_walk.h"
#include "hold/pinning.h"

#define TRIM_RANGES_MAX (1U << 18)
#define PINS_MAX 4096 /* sizes of live chunks that are told apart */

struct arena_sum {
	uint64_t threads;      /* attached to it now */
	uint64_t system_bytes; /* that the allocator says it took */
	uint32_t heaps;
	uint64_t counts[CHUNK_KINDS];
	struct page_bytes bytes[CHUNK_KINDS];
	struct page_bytes overhead;
	struct page_bytes unread;
	struct page_bytes hidden;
	struct page_bytes unfollowed; /* live, or free in a list that was cut */
	struct page_bytes trim;	      /* whole pages that would come back */
	struct page_bytes trim_top;   /* of them, by a lower program break */
	struct page_bytes locked;     /* would, too, were they not locked in memory */
	uint64_t largest;	      /* the longest free stretch below live chunks */
	uint64_t above;		      /* live bytes between it and the end */
};

/* Live chunks of one size, and what is resident and free behind them on pages that stay. */
struct pin {
	uint64_t size;
	uint64_t chunks;
	uint64_t bytes;
	char hint[HINT_MAX]; /* what most of them begin with, as far as it has a name */
};

/* Pages that malloc_trim(0) gives back, of one state. */
struct trim_range {
	uint64_t start;
	uint64_t end;
	bool resident;
};

struct heap_sum {
	GArray *arenas; /* of struct arena_sum */
	struct arena_sum all;
	GArray *pins; /* of struct pin, most bytes first */
	struct pinning pinning;
	GArray *heap_ranges; /* of struct trim_range: the heaps, ascending; resident is not set */
	GArray *trim_ranges; /* of struct trim_range, ascending; TRIM_RANGES_MAX at most */
	uint64_t trim_ranges_left; /* of them that were too many */
	struct cached_chunks cached;
	uint64_t
		left_out; /* chunks that were too many to keep: more may be free, and trim be too low */
	uint64_t read_again;
	uint64_t damages;
	struct damage damage; /* the first */
	bool corrupt;	      /* it stayed as it was */
};

/* Of a walk that has run; its lists are resolved by this. */
void heap_sum_make(struct heap_walk *walk, struct heap_sum *sum);
void heap_sum_free(struct heap_sum *sum);

/* What is free: all kinds but the live ones. */
struct page_bytes arena_free(const struct arena_sum *sum);

#endif /* MEMTOLL_HEAP_SUM_H */
