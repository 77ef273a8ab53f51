/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pagetable.bpf.h: the page-table entry of a user address, x86-64 (Intel SDM vol. 3, chapter 4).
 */
#ifndef MEMTOLL_PAGETABLE_BPF_H
#define MEMTOLL_PAGETABLE_BPF_H

#define PTE_PRESENT 0x001ULL
#define PTE_HUGE 0x080ULL
#define PTE_PROT_NONE 0x100ULL		/* _PAGE_PROTNONE: present to the kernel, not to the MMU */
#define PTE_PFN_MASK 0x000ffffffffff000ULL

enum walk_end { WALK_FAILED, WALK_NONE, WALK_NO_TABLE, WALK_ENTRY, WALK_HUGE };

/*
 * Follow the page tables of `task` to the entry of `address`. page_offset: base of the direct map.
 * WALK_NO_TABLE: already the middle directory was empty, so that a huge page could be mapped.
 */
static __always_inline enum walk_end walk(struct task_struct *task, __u64 address,
					  __u64 page_offset, __u32 levels, __u64 *entry)
{
	__u64 table = (__u64)task->mm->pgd;
	__u64 value = 0, slot;
	int level;

	for (level = 0; level < 5; level++) {
		if (level == 0 && levels == 4)
			continue;
		slot = table + ((address >> (48 - 9 * level)) & 511) * sizeof(value);
		if (bpf_probe_read_kernel(&value, sizeof(value), (void *)slot))
			return WALK_FAILED;
		*entry = value;
		if (level == 4)
			return value ? WALK_ENTRY : WALK_NONE;
		if (!value)
			return WALK_NO_TABLE;
		if (!(value & PTE_PRESENT))
			return WALK_ENTRY;
		if (level >= 2 && (value & PTE_HUGE))
			return WALK_HUGE;
		table = page_offset + (value & PTE_PFN_MASK);
	}
	return WALK_FAILED;
}

#endif /* MEMTOLL_PAGETABLE_BPF_H */
