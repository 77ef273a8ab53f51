/* SPDX-License-Identifier: GPL-2.0 */
/*
 * folio.bpf.h: the folio that a page frame belongs to. Part of page_state.bpf.c.
 *
 * struct page of a frame lies at vmemmap + frame * sizeof(struct page). Where vmemmap begins is not
 * exported; a thread's own stack shows it: the kernel keeps the struct page of each of its pages
 * (CONFIG_VMAP_STACK), and the page tables have the frame.
 */
#ifndef MEMTOLL_FOLIO_BPF_H
#define MEMTOLL_FOLIO_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "wire/config.h"
#include "memory/page_state.bpf.h"
#include "memory/pagetable.bpf.h"

#define VMEMMAP_ALIGN (1ULL << 30) /* kernel_randomize_memory() moves it by such steps */
#define VMEMMAP_UNKNOWN 1ULL
#define FOLIO_ORDER_MAX 9
#define MAPPING_KSM 3ULL

/* 0: not looked for yet. */
volatile __u64 vmemmap_base = 0;

__noinline int vmemmap_find(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct walked walked = {};
	struct page *page = NULL;
	struct page **pages;
	int end;
	__u64 base, stack;

	vmemmap_base = VMEMMAP_UNKNOWN;
	if (!bpf_core_field_exists(task->stack_vm_area))
		return 0;
	pages = BPF_CORE_READ(task, stack_vm_area, pages);
	if (!pages || bpf_probe_read_kernel(&page, sizeof(page), pages) || !page)
		return 0;
	stack = (__u64)BPF_CORE_READ(task, stack);
	end = walk_tables(&walked, table_root(), stack);
	if ((end != WALK_ENTRY && end != WALK_HUGE) || !(walked.entry & PTE_PRESENT))
		return 0;
	base = (__u64)page - walked_pfn(&walked, stack) * bpf_core_type_size(struct page);
	if (!(base % VMEMMAP_ALIGN))
		vmemmap_base = base;
	return 0;
}

/*
 * Pages of the folio of a frame, and the frame's place in it. 1 and 0 where it is not known. *place has
 * to be set before: a verifier without kernel commit 6715df8d5d24 (6.3) takes it for read.
 */
__noinline __u64 folio_pages(__u64 pfn, __u64 *place)
{
	__u64 size = bpf_core_type_size(struct page), page, link = 0, head, order = 0;

	if (!place)
		return 1;
	*place = 0;
	if (!vmemmap_base)
		vmemmap_find();
	if (vmemmap_base == VMEMMAP_UNKNOWN || !bpf_core_field_exists(struct page, compound_head) ||
	    !bpf_core_field_exists(struct folio, _flags_1))
		return 1;
	page = vmemmap_base + pfn * size;
	/* Pages after the first point to that one, with the lowest bit set. */
	bpf_core_read(&link, sizeof(link), &((struct page *)page)->compound_head);
	head = link & 1 ? link - 1 : page;
	bpf_core_read(&link, sizeof(link), &((struct page *)(head + size))->compound_head);
	if (link != (head | 1))
		return 1;
	bpf_core_read(&order, sizeof(order), &((struct folio *)head)->_flags_1);
	order &= 0xff;
	if (order > FOLIO_ORDER_MAX)
		return 1;
	*place = (page - head) / size;
	return 1ULL << order;
}

/* Whose memory a frame holds (struct folio's mapping). False: not known. */
static __always_inline bool frame_mapping(__u64 pfn, __u64 *mapping)
{
	__u64 page;

	if (!vmemmap_base)
		vmemmap_find();
	if (vmemmap_base == VMEMMAP_UNKNOWN)
		return false;
	page = vmemmap_base + pfn * bpf_core_type_size(struct page);
	if (bpf_core_field_exists(struct folio, mapping))
		return !bpf_core_read(mapping, sizeof(*mapping), &((struct folio *)page)->mapping);
	if (bpf_core_field_exists(struct page, mapping))
		return !bpf_core_read(mapping, sizeof(*mapping), &((struct page *)page)->mapping);
	return false;
}

/*
 * Whether a frame holds equal pages that KSM has made one: FOLIO_MAPPING_KSM, before 6.16
 * PAGE_MAPPING_KSM (include/linux/page-flags.h). Each write to such a page copies it.
 */
static __always_inline bool frame_is_merged(__u64 pfn)
{
	__u64 mapping = 0;

	return frame_mapping(pfn, &mapping) && (mapping & MAPPING_KSM) == MAPPING_KSM;
}

/*
 * Whether the first frame of a huge page, which a write would copy, is the huge zero page's: of all
 * that is mapped so that one is nobody's. Its frame is another whenever all have let it go and the
 * shrinker took it (mm/huge_memory.c), so that the one of the start tells only where no better is known.
 */
static __always_inline bool frame_is_huge_zero(__u64 pfn)
{
	__u64 mapping = 0;

	if (frame_mapping(pfn, &mapping))
		return !mapping;
	return cfg_huge_zero_pfn && pfn == cfg_huge_zero_pfn;
}

#endif /* MEMTOLL_FOLIO_BPF_H */
