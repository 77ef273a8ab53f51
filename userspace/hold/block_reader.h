/* SPDX-License-Identifier: GPL-2.0 */
/*
 * block_reader.h: a heap's memory in blocks. Pages that are not in memory are not read: that would
 * bring back what is swapped out, and map what was never touched.
 */
#ifndef MEMTOLL_BLOCK_READER_H
#define MEMTOLL_BLOCK_READER_H

#include "hold/memory_view.h"

struct block_reader {
	const struct memory_view *view;
	struct page_range *pages;
	bool read_swapped;
	bool gone;	 /* the process: its pages have no states any more */
	uint64_t blocks; /* read so far */
	char *block;
	uint64_t start; /* of what is in it */
	uint64_t size;
	uint64_t wanted; /* size of the next one: large in a run, small after a leap */
};

/* pages: those that may be read; borrowed, and changed where one went away. */
void block_reader_open(struct block_reader *reader, const struct memory_view *view,
		       struct page_range *pages, bool read_swapped);
void block_reader_close(struct block_reader *reader);

/*
 * Bytes at address, at most VIEW_PAGE of them, valid until the next call. NULL: not all are in
 * memory.
 */
const void *block_reader_get(struct block_reader *reader, uint64_t address, uint64_t size);
/* What was read may have changed: read it again. */
void block_reader_forget(struct block_reader *reader);

/* Whether the page of address may be read, the next address of one that may, and why not. */
bool block_reader_has(const struct block_reader *reader, uint64_t address);
uint64_t block_reader_next(const struct block_reader *reader, uint64_t address);
bool block_reader_is_swapped(const struct block_reader *reader, uint64_t address);

#endif /* MEMTOLL_BLOCK_READER_H */
