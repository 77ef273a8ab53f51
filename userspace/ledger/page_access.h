/* SPDX-License-Identifier: GPL-2.0 */
/*
 * page_access.h: how the pages of an allocation are used: touched once or again and again, in a
 * sweep or in no order.
 *
 * Pure: parts of runs in, sums out. A site is an allocation call (pid, allocated_fn,
 * allocated_stack) or, for faults outside of allocations, an area (pid, area, dev, inode).
 */
#ifndef MEMTOLL_PAGE_ACCESS_H
#define MEMTOLL_PAGE_ACCESS_H

#include <linux/types.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/records.h"

/* Returns are counted in tables of 2 MiB, 1 KiB each: 128 GiB followed in 64 MiB. */
#define RETURN_TABLES_MAX 65536

/*
 * Cumulative since the start. For allocations inode and dev are 0, and area is but for shared
 * memory.
 */
struct access {
	pid_t pid;
	uint8_t allocated_fn;
	uint8_t area;
	uint64_t allocated_stack;
	uint64_t inode;
	uint32_t dev;
	uint64_t first_pages;		 /* pages first touched: a read of the zero page is not */
	uint64_t first_sequential_pages; /* of them, in a sweep */
	uint64_t in_pages;		 /* faults on swapped pages, major and minor */
	uint64_t in_sequential_pages;
	uint64_t distinct_pages;  /* different pages that came back at least once */
	uint64_t max_returns;	  /* of one page; ends at 65,535 */
	uint64_t untracked_pages; /* swap-ins whose page could not be followed */
};

typedef void access_fn(void *context, const struct access *access);

struct accesses;

struct accesses *accesses_new(void);
void accesses_free(struct accesses *accesses);

/* A run, or a part of one, that is charged whole to one site. allocated_fn 0: to its area. */
void accesses_charge(struct accesses *accesses, const struct memtoll_run *part,
		     uint8_t allocated_fn, uint64_t allocated_stack);

/* The same of faults that nobody has seen: how many pages, in order as others are. */
void accesses_unspoken(struct accesses *accesses, const struct memtoll_run *part,
		       uint8_t allocated_fn, uint64_t allocated_stack);

/*
 * The pages of [start, end) are gone: what comes to these addresses has not returned yet. Those of
 * shared memory are not, as long as a process uses it.
 */
void accesses_forget(struct accesses *accesses, pid_t pid, uint64_t start, uint64_t end);

/* The pages of [from, from + bytes) are now at `to`, with their counts. Page-aligned. */
void accesses_move(struct accesses *accesses, pid_t pid, uint64_t from, uint64_t to,
		   uint64_t bytes);

/* A new image, or a new process: no page of it has returned, no sweep goes on. */
void accesses_restart(struct accesses *accesses, pid_t pid);

/* The process has ended: its sites are reported once more, then forgotten. */
void accesses_exit(struct accesses *accesses, pid_t pid);

/* Every site whose figures have changed since the last call. */
void accesses_each(struct accesses *accesses, access_fn *on_access, void *context);

/* Swap-ins of all sites whose page could not be followed, since the start. */
uint64_t accesses_untracked(const struct accesses *accesses);

#endif /* MEMTOLL_PAGE_ACCESS_H */
