/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mapped_chunks.h: blocks that glibc's allocator has mapped one by one (IS_MMAPPED), found by their
 * headers at the start of pages of anonymous mappings.
 */
#ifndef MEMTOLL_MAPPED_CHUNKS_H
#define MEMTOLL_MAPPED_CHUNKS_H

#include <glib.h>

#include "hold/block_reader.h"
#include "hold/malloc_state.h"
#include "hold/memory_view.h"

/* A stretch of memory that is an allocator's. */
struct owned_range {
	uint64_t start;
	uint64_t end;
	struct page_bytes bytes;
};

struct mapped_chunks {
	uint64_t count;
	struct page_bytes bytes;
	GArray *ranges; /* of struct owned_range, ascending */
};

/* Size of the one that begins at address and ends at `end` at the latest; 0: none does. */
uint64_t mapped_chunk_size(struct block_reader *reader, uint64_t address, uint64_t end);
/* wanted: how many there are, by the allocator's own count; -1: not known. */
void mapped_chunks_find(const struct memory_view *view, const struct maps *maps,
			const struct malloc_heaps *heaps, int64_t wanted,
			struct mapped_chunks *found);
void mapped_chunks_free(struct mapped_chunks *found);

#endif /* MEMTOLL_MAPPED_CHUNKS_H */
