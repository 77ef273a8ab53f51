/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cached_chunks.h: chunks that are free though their headers say that they are live: those of
 * threads' caches (tcache) and of fast lists. Their lists are followed in what the walk has kept.
 */
#ifndef MEMTOLL_CACHED_CHUNKS_H
#define MEMTOLL_CACHED_CHUNKS_H

#include "hold/heap_walk.h"

struct cached_chunks {
	uint64_t caches; /* threads' caches found */
	uint64_t torn;	 /* lists that changed before their end was reached */
	uint64_t cut;	 /* lists that go on among the chunks that were too many to keep */
};

/* Whether what a thread's cache would have in it is there; the walk keeps few others then. */
bool cached_chunks_may_be(const struct malloc_heaps *heaps, const struct cache_chunk *cache);

/* Change the kinds of what is in a list, in walk's entries and its sums. Unsorted ones as well. */
void cached_chunks_resolve(struct heap_walk *walk, struct cached_chunks *found);

#endif /* MEMTOLL_CACHED_CHUNKS_H */
