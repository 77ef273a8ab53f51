// SPDX-License-Identifier: GPL-2.0
/*
 * page_state.bpf.c: what a fault found in the page tables, and how many pages it has mapped: one,
 * those around it in the page cache, a folio of several pages, a huge page. And the area of an
 * address.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "wire/config.h"
#include "wire/faults.h"
#include "wire/pages.h"
#include "state/fault_order.bpf.h"
#include "state/open_fault.bpf.h"
#include "state/threads.bpf.h"
#include "memory/page_state.bpf.h"
#include "memory/pagetable.bpf.h"
#include "memory/folio.bpf.h"
#include "memory/direct_map.bpf.h"
#include "memory/page_cache.bpf.h"
#include "memory/vma.bpf.h"

/* What to do at the end of a fault: look at its entry, and at the entries around it. */
enum { LOOK_NOT, LOOK_ENTRY, LOOK_AROUND };

/*
 * The running task, to follow its pointers. At each that is read through a pointer it trusts, the
 * verifier looks four times through all of the kernel's types, some milliseconds of a start
 * (btf_nested_type_is_trusted(), 6.2 and later). What a cast returns it does not trust; the load is
 * the same. In functions, which are here because libbpf's linker takes the declaration of the cast
 * from one object only.
 */
static __always_inline const struct task_struct *current(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!cfg_casts)
		return task;
	return bpf_rdonly_cast(task, bpf_core_type_id_kernel(struct task_struct));
}

__u64 current_mm(void)
{
	return kernel_word((__u64)&bpf_get_current_task_btf()->mm);
}

__u64 current_leader(void)
{
	return thread_owner(current()->group_leader);
}

__u64 current_heap(void)
{
	return current()->mm->start_brk;
}

__u64 current_heap_top(void)
{
	return current()->mm->brk;
}

__u64 current_stack(void)
{
	return current()->mm->start_stack;
}

__u64 current_file(__u32 fd)
{
	const struct files_struct *files = current()->files;
	const struct fdtable *table;
	__u64 file = 0;

	if (!files)
		return 0;
	table = files->fdt;
	if (fd < table->max_fds)
		bpf_probe_read_kernel(&file, sizeof(file), &table->fd[fd]);
	return file;
}

__u64 table_root(void)
{
	return kernel_word((__u64)&current()->mm->pgd);
}

int walk_tables(struct walked *walked, __u64 root, __u64 address)
{
	if (!walked)
		return WALK_FAILED;
	walked->entry = 0;
	walked->slot = 0;
	if (!root)
		return WALK_FAILED;
	return walk(root, address, cfg_page_offset, cfg_page_levels, walked);
}

int slot_is_empty(__u64 table, __u64 table_at, __u64 address)
{
	__u64 slot = cfg_page_offset + (table & PTE_PFN_MASK) +
		     (address >> 12) % TABLE_PAGES * sizeof(slot);

	return kernel_word(table_at) == table && !kernel_word(slot);
}

/* What must be known of the surroundings to say at the end how many pages this fault mapped. */
int look_around(struct open_fault *fault, int end, __u64 area_start)
{
	const struct walked *walked;
	bool file, folio;

	if (!fault)
		return 0;
	walked = &fault->walked;
	file = fault->fault_class == FAULT_FILE || fault->fault_class == FAULT_FILE_AGAIN ||
	       fault->fault_class == FAULT_SHARED || fault->fault_class == FAULT_SHARED_ZERO;
	folio = cfg_mthp_orders &&
		(fault->fault_class == FAULT_ZERO || fault->fault_class == FAULT_SWAP);
	fault->look_again =
		end == WALK_NO_TABLE || end == WALK_HUGE || fault->fault_class == FAULT_COW ?
			LOOK_ENTRY :
			LOOK_NOT;
	if (fault->fault_class == FAULT_COW) {
		fault->pfn = walked_pfn(walked, fault->address);
		if (end == WALK_HUGE && frame_is_huge_zero(fault->pfn & ~(walked->pages - 1)))
			fault->fault_class = FAULT_ZERO_UPGRADE;
		fault->merged = end == WALK_ENTRY && frame_is_merged(fault->pfn);
	}
	if ((!file && !folio) || (!walked->slot && end != WALK_NO_TABLE))
		return 0;
	fault->look_again = LOOK_AROUND;
	fault->window_first = window_first(fault->address, area_start);
	fault->window = walked->slot ?
				window_present(walked->slot, fault->window_first, fault->entries) :
				0;
	return 0;
}

/*
 * Pages of a folio beyond the page of `slot`, before or after it, if they are mapped with it. What
 * is mapped so far from the fault came with the whole of its folio (6.18, kernel commits
 * 19773df031bc and 357b92761d94; anonymous memory always).
 */
static __always_inline __u64 folio_beyond(__u64 address, __u64 table, __u32 slot, bool after,
					  __u64 area_start, __u64 area_end)
{
	__u64 pfn = (table_entry(table, slot) & PTE_PFN_MASK) >> 12, place = 0, count, far, entry;

	count = folio_pages(pfn, &place);
	count = after ? count - 1 - place : place;
	far = after ? slot + count : slot - count;
	if (!count || far >= TABLE_PAGES)
		return 0;
	address = (address & ~(TABLE_PAGES * MEMTOLL_PAGE_SIZE - 1)) + far * MEMTOLL_PAGE_SIZE;
	if (address < area_start || address >= area_end)
		return 0;
	entry = table_entry(table, far);
	if (!(entry & PTE_PRESENT) ||
	    (entry & PTE_PFN_MASK) >> 12 != (after ? pfn + count : pfn - count))
		return 0;
	return count;
}

/* Without a branch, or the verifier would look at every window there can be. */
__noinline __u32 bits_in(__u32 window)
{
	return __builtin_popcount(window);
}

/*
 * Bit i: the window's page i is of the folio of its page `own`. A fault in anonymous memory maps
 * that folio and no other: what else is present by now, another thread's fault has mapped.
 */
static __always_inline __u32 folio_in_window(__u64 entry, __u32 own)
{
	__u64 place = 0, count, end;
	__u32 first;

	count = folio_pages((entry & PTE_PFN_MASK) >> 12, &place);
	if (vmemmap_base == VMEMMAP_UNKNOWN)
		return ~0U;
	first = place < own ? own - place : 0;
	end = own + count - place;
	return (end < 32 ? (1U << end) - 1 : ~0U) & ~0U << first;
}

/* Pages that became present around the fault; its address moves to the first of them. */
static __always_inline __u64 pages_around(struct open_fault *fault, __u64 table, __u64 area_start,
					  __u64 area_end)
{
	__u32 own = (fault->address >> 12) % TABLE_PAGES, first = fault->window_first, fresh;
	__u64 pages, beyond, address = fault->address;

	fresh = window_present(table, first, fault->entries) & ~fault->window;
	fresh |= 1U << ((own - first) & 31);
	if (fault->fault_class == FAULT_ZERO || fault->fault_class == FAULT_SWAP ||
	    fault->fault_class == FAULT_SHARED_ZERO)
		fresh &= folio_in_window(table_entry(table, own), (own - first) & 31);
	pages = bits_in(fresh);
	fault->address -= (own - first) * MEMTOLL_PAGE_SIZE;
	fault->address += bits_in((fresh & -fresh) - 1) * MEMTOLL_PAGE_SIZE;
	if (fresh & 1) {
		beyond = folio_beyond(address, table, first, false, area_start, area_end);
		pages += beyond;
		fault->address -= beyond * MEMTOLL_PAGE_SIZE;
	}
	if (fresh & 1U << (WINDOW_PAGES - 1))
		pages += folio_beyond(address, table, first + WINDOW_PAGES - 1, true, area_start,
				      area_end);
	return pages;
}

/* The page-table entry after the fault: what it mapped, and whether it copied. Pages. */
__u64 fault_result(struct open_fault *fault, __u64 area_start, __u64 area_end)
{
	struct walked *walked;
	__u64 pages;
	int end;

	if (!fault)
		return 1;
	walked = &fault->walked;
	end = walk_tables(walked, fault->root, fault->address);
	if (fault->fault_class == FAULT_COW && fault->pfn && (walked->entry & PTE_PRESENT) &&
	    walked_pfn(walked, fault->address) == fault->pfn) {
		fault->fault_class = FAULT_REUSE;
		return 1;
	}
	if (fault->fault_class == FAULT_COW && fault->merged)
		fault->fault_class = FAULT_COW_MERGED;
	if (end == WALK_HUGE) {
		fault->address &= ~(walked->pages * MEMTOLL_PAGE_SIZE - 1);
		if (fault->fault_class == FAULT_ZERO || fault->fault_class == FAULT_ZERO_UPGRADE)
			fault->fault_class = FAULT_ZERO_HUGE;
		return walked->pages;
	}
	if (!walked->slot || fault->look_again != LOOK_AROUND)
		return 1;
	pages = pages_around(fault, walked->slot, area_start, area_end);
	if (fault->fault_class == FAULT_ZERO && pages > 1)
		fault->fault_class = FAULT_ZERO_MTHP;
	return pages;
}
