/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pagebits.h: of each page of a process's memory: is it in use, was it released and not used
 * since? A page is one or the other, or neither. Addresses are bytes on page boundaries, ranges
 * [start, end).
 */
#ifndef MEMTOLL_PAGEBITS_H
#define MEMTOLL_PAGEBITS_H

#include <stddef.h>
#include <stdint.h>

/* Memory for bits, shared by all processes: parts of 2 MiB of addresses that may still be made. */
struct pagebits_budget {
	size_t left;
	uint64_t refused_pages;	/* touched, and not kept for want of it */
};

struct pagebits;

struct pagebits *pagebits_new(struct pagebits_budget *budget);
void pagebits_free(struct pagebits *bits);

/* In use from now on. How many of them had been released. */
uint64_t pagebits_touch(struct pagebits *bits, uint64_t start, uint64_t end);

/* Release those in use. How many that were. */
uint64_t pagebits_release(struct pagebits *bits, uint64_t start, uint64_t end);

/*
 * Late news of pages that were in use before their release: all are released. How many had been
 * before, and so were used in between.
 */
uint64_t pagebits_touched_before(struct pagebits *bits, uint64_t start, uint64_t end);

/* How many of the pages are released. */
uint64_t pagebits_released(struct pagebits *bits, uint64_t start, uint64_t end);

/* The same as ranges that do not overlap, in no order; one may end where the next one starts. */
typedef void pagebits_fn(void *context, uint64_t start, uint64_t end);
void pagebits_each_released(struct pagebits *bits, uint64_t start, uint64_t end,
			    pagebits_fn *on_range, void *context);

/* Neither. */
void pagebits_forget(struct pagebits *bits, uint64_t start, uint64_t end);

#endif /* MEMTOLL_PAGEBITS_H */
