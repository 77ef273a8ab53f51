/* SPDX-License-Identifier: GPL-2.0 */
/* ranges.h: disjoint address ranges, found by address. */
#ifndef MEMTOLL_RANGES_H
#define MEMTOLL_RANGES_H

#include <glib.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire/pages.h"

#define PAGE MEMTOLL_PAGE_SIZE
#define PAGE_FLOOR(x) ((x) & ~(PAGE - 1))
#define PAGE_CEIL(x) PAGE_FLOOR((x) + PAGE - 1)

/* An anonymous mmap of the program, which may have been split into several ranges. */
struct mapped {
	uint64_t bytes; /* still mapped, of all parts */
	bool counted;	/* an allocation: it reached the minimum size */
	bool inherited; /* from a fork: its lifetime is counted in the parent */
};

/* A block of the allocator, or a part of a mapping. */
struct range {
	uint64_t start;
	uint64_t end;
	uint64_t made_ns;
	uint64_t ready_ns; /* its call returned; regions: 0 */
	uint64_t ended_ns;
	uint64_t stack_id;
	uint64_t zero_pages;   /* blocks: pages the kernel cleared in it */
	struct mapped *mapped; /* parts of a mapping; NULL: of a file */
	uint16_t flags;	       /* BLOCK_* */
	uint8_t fn;	       /* enum memtoll_fn, or ALLOCATED_MMAP */
	bool inherited;	       /* blocks: as struct mapped has it */
};

/* Start -> struct range; the key is a field of the range. */
GTree *ranges_new(GDestroyNotify destroy);
void ranges_add(GTree *ranges, struct range *range);
void ranges_clear(GTree *ranges);

/* The range that holds the byte at address, or NULL. */
struct range *range_at(GTree *ranges, uint64_t address);

/* The first range that holds a byte of [start, end), or NULL. */
struct range *range_overlapping(GTree *ranges, uint64_t start, uint64_t end);

#endif /* MEMTOLL_RANGES_H */
