// SPDX-License-Identifier: GPL-2.0
/*
 * extent.bpf.c: what a fault found in the page tables, and how many pages it has mapped: one, those
 * around it in the page cache, a folio of several pages, a huge page.
 */
#include "memtoll.bpf.h"

/* What to do at the end of a fault: look at its entry, and at the entries around it. */
enum { LOOK_NOT, LOOK_ENTRY, LOOK_AROUND };

/* Sizes of multi-size huge pages whose pages do not all fit into one window. */
#define LARGE_ORDER_MIN 5
#define LARGE_ORDER_MAX 8

int walk_tables(struct walked *walked, __u64 root, __u64 address)
{
	if (!walked)
		return WALK_FAILED;
	return walk(root, address, cfg_page_offset, cfg_page_levels, walked);
}

/* What must be known of the surroundings to say at the end how many pages this fault mapped. */
int look_around(struct open_fault *fault, const struct walked *walked, int end)
{
	__u32 order, slot, first;
	bool file;

	if (!fault || !walked)
		return 0;
	file = fault->fault_class == FAULT_FILE || fault->fault_class == FAULT_SHARED;
	slot = (walked->slot & 4095) / 8;
	fault->window = 0;
	fault->empty_orders = 0;
	fault->look_again = end == WALK_NO_TABLE || end == WALK_HUGE ||
			    fault->fault_class == FAULT_COW ? LOOK_ENTRY : LOOK_NOT;
	if (fault->fault_class == FAULT_COW)
		fault->pfn = walked_pfn(walked, fault->address);
	if (!walked->slot && end != WALK_NO_TABLE)
		return 0;
	if (!file && (!cfg_mthp_orders || (fault->fault_class != FAULT_ZERO &&
					   fault->fault_class != FAULT_SWAP)))
		return 0;
	fault->look_again = LOOK_AROUND;
	if (end == WALK_NO_TABLE) {
		fault->empty_orders = cfg_mthp_orders;
		return 0;
	}
	fault->window = window_present(walked->slot);
	for (order = LARGE_ORDER_MIN; order <= LARGE_ORDER_MAX; order++) {
		if (!(cfg_mthp_orders & (1U << order)))
			continue;
		first = slot & ~((1U << order) - 1);
		if (!((table_entry(walked->slot, first) |
		       table_entry(walked->slot, first + (1U << order) - 1)) & PTE_PRESENT))
			fault->empty_orders |= 1U << order;
	}
	return 0;
}

/*
 * Pages of the largest folio that this fault can have mapped: all of it was absent before, and now
 * its ends lie in adjacent frames on a boundary of its size. 0: none.
 */
static __always_inline __u64 large_folio(const struct open_fault *fault,
					 const struct walked *walked)
{
	__u32 order, first, slot = (walked->slot & 4095) / 8;
	__u64 low, high, pages;

	for (order = LARGE_ORDER_MAX; order >= LARGE_ORDER_MIN; order--) {
		if (!(fault->empty_orders & (1U << order)))
			continue;
		pages = 1ULL << order;
		first = slot & ~(pages - 1);
		low = table_entry(walked->slot, first);
		high = table_entry(walked->slot, first + pages - 1);
		if (!(low & high & PTE_PRESENT))
			continue;
		low = (low & PTE_PFN_MASK) >> 12;
		high = (high & PTE_PFN_MASK) >> 12;
		if (high - low == pages - 1 && !(low & (pages - 1)))
			return pages;
	}
	return 0;
}

/* Pages that became present around the fault; its address moves to the first of them. */
static __always_inline __u64 pages_around(struct open_fault *fault, const struct walked *walked)
{
	__u32 fresh, own = (fault->address >> 12) % WINDOW_PAGES, i, first = own;
	__u64 pages;

	pages = large_folio(fault, walked);
	if (pages) {
		fault->address &= ~(pages * MEMTOLL_PAGE_SIZE - 1);
		return pages;
	}
	pages = 0;
	fresh = (window_present(walked->slot) & ~fault->window) | 1U << own;
	for (i = 0; i < WINDOW_PAGES; i++) {
		if (!(fresh & (1U << i)))
			continue;
		if (!pages)
			first = i;
		pages++;
	}
	fault->address -= (own - first) * MEMTOLL_PAGE_SIZE;
	return pages;
}

/* The page-table entry after the fault: what it mapped, and whether it copied. Pages. */
__u64 fault_result(struct open_fault *fault, __u64 root)
{
	struct walked walked = {};
	__u64 pages;
	int end;

	if (!fault)
		return 1;
	end = walk_tables(&walked, root, fault->address);
	if (fault->fault_class == FAULT_COW && fault->pfn && (walked.entry & PTE_PRESENT) &&
	    walked_pfn(&walked, fault->address) == fault->pfn) {
		fault->fault_class = FAULT_REUSE;
		return 1;
	}
	if (end == WALK_HUGE) {
		fault->address &= ~(walked.pages * MEMTOLL_PAGE_SIZE - 1);
		if (fault->fault_class == FAULT_ZERO || fault->fault_class == FAULT_ZERO_UPGRADE)
			fault->fault_class = FAULT_ZERO_HUGE;
		return walked.pages;
	}
	if (!walked.slot || fault->look_again != LOOK_AROUND)
		return 1;
	pages = pages_around(fault, &walked);
	if (fault->fault_class == FAULT_ZERO && pages > 1)
		fault->fault_class = FAULT_ZERO_MTHP;
	return pages;
}
