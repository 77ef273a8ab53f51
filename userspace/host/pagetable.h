/* SPDX-License-Identifier: GPL-2.0 */
/* pagetable.h: base of the direct map, through which BPF programs read page tables. */
#ifndef MEMTOLL_PAGETABLE_H
#define MEMTOLL_PAGETABLE_H

#include <stdint.h>

struct pagetable {
	uint64_t page_offset;	/* base of the direct map */
	uint32_t levels;	/* 4 or 5 */
	uint64_t zero_pfn;	/* the shared zero page; 0: not found */
	uint64_t huge_zero_pfn; /* the huge one; 0: huge pages are off */
	uint32_t mthp_orders;	/* bit n: anonymous folios of 2^n pages are enabled */
	const char *source;	/* where page_offset came from, for doctor */
	void *huge_mapping;	/* keeps the huge zero page allocated */
};

/*
 * Find the base of the direct map (symbol page_offset_base, /proc/kcore, the kernel's default, or
 * by trying below the root of our own page tables) and prove it: a BPF program walks the tables
 * with it and must find what we have just written to a page. 0, -EPERM without privileges, -ENOTSUP
 * where no candidate is right.
 */
int pagetable_find(struct pagetable *pagetable);
void pagetable_release(struct pagetable *pagetable);

#endif /* MEMTOLL_PAGETABLE_H */
