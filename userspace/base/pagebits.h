/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pagebits.h: state of each page of a process: in use, released and not used since, or neither.
 * Addresses are in bytes, on page boundaries, ranges [start, end).
 */
#ifndef MEMTOLL_PAGEBITS_H
#define MEMTOLL_PAGEBITS_H

#include <stddef.h>
#include <stdint.h>

/* Limit shared by all processes, in bitmaps for 2 MiB of addresses. */
struct pagebits_budget {
	size_t left;
	uint64_t refused_pages; /* touched, but not kept: the limit was reached */
};

struct pagebits;

struct pagebits *pagebits_new(struct pagebits_budget *budget);
void pagebits_free(struct pagebits *bits);

/* Mark pages as in use. Number of them that had been released. */
uint64_t pagebits_touch(struct pagebits *bits, uint64_t start, uint64_t end);

/* Mark those in use as released. Number of these. */
uint64_t pagebits_release(struct pagebits *bits, uint64_t start, uint64_t end);

/*
 * Late news that pages were in use before their release: mark those as released that are not in use
 * again. Number of the uses by now that came after a release and are not told yet: of pages that
 * already were released, which must have been used in between, and of pages in use, where either
 * this use or the one since was after one.
 */
uint64_t pagebits_touched_before(struct pagebits *bits, uint64_t start, uint64_t end);

/* Number of pages that are released, or in use. */
uint64_t pagebits_released(struct pagebits *bits, uint64_t start, uint64_t end);
uint64_t pagebits_used(struct pagebits *bits, uint64_t start, uint64_t end);

/* Visit them as disjoint ranges, in no order; one may end where the next one starts. */
typedef void pagebits_fn(void *context, uint64_t start, uint64_t end);
void pagebits_each_released(struct pagebits *bits, uint64_t start, uint64_t end,
			    pagebits_fn *on_range, void *context);

/* Mark pages as neither. */
void pagebits_forget(struct pagebits *bits, uint64_t start, uint64_t end);

#endif /* MEMTOLL_PAGEBITS_H */
