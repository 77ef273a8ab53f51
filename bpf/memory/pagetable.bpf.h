/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pagetable.bpf.h: the page-table entry of a user address, x86-64 (Intel SDM vol. 3, chapter 4).
 */
#ifndef MEMTOLL_PAGETABLE_BPF_H
#define MEMTOLL_PAGETABLE_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "wire/config.h"
#include "state/open_fault.bpf.h"

#define PTE_PRESENT 0x001ULL
#define PTE_HUGE 0x080ULL
#define PTE_PROT_NONE 0x100ULL /* _PAGE_PROTNONE: present to the kernel, not to the MMU */
#define PTE_USERFAULT 0x400ULL /* _PAGE_UFFD_WP: write-protected by userfaultfd */
#define PTE_PFN_MASK 0x000ffffffffff000ULL

/* Only where cfg_casts says that the kernel has it. */
extern void *bpf_rdonly_cast(const void *object, __u32 type_id) __ksym __weak;

/*
 * A word of the kernel's memory, 0 where there is none. A cast makes of it a load that may fail; as
 * a helper it is a call of some 20 to 50 ns, five of them a walk.
 */
static __always_inline __u64 kernel_word(__u64 address)
{
	__u64 value = 0;
#ifndef KERNEL_WORD_BY_HELPER
	/* Any structure that begins with 64 bits; this one is looked up for others, too. */
	const struct pt_regs *number;

	if (cfg_casts) {
		number = bpf_rdonly_cast((void *)address, bpf_core_type_id_kernel(struct pt_regs));
		return number->r15;
	}
#endif
	bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
	return value;
}

enum walk_end { WALK_FAILED, WALK_NONE, WALK_NO_TABLE, WALK_ENTRY, WALK_HUGE };

/*
 * Follow page tables from their root to the entry of `address`. page_offset: base of the direct
 * map. WALK_NO_TABLE: already the middle directory was empty, so that a huge page could be mapped.
 */
static __always_inline enum walk_end walk(__u64 root, __u64 address, __u64 page_offset,
					  __u32 levels, struct walked *walked)
{
	__u64 table = root, value = 0, slot = 0;
	int level;

	walked->pages = 1;
	walked->slot = 0;
	for (level = 0; level < 5; level++) {
		if (level == 0 && levels == 4)
			continue;
		if (level == 4) {
			walked->table = value;
			walked->table_at = slot;
		}
		slot = table + ((address >> (48 - 9 * level)) & 511) * sizeof(value);
		value = kernel_word(slot);
		walked->entry = value;
		walked->at = slot;
		if (level == 4) {
			walked->slot = slot;
			return value ? WALK_ENTRY : WALK_NONE;
		}
		if (!value)
			return WALK_NO_TABLE;
		if (!(value & PTE_PRESENT))
			return WALK_ENTRY;
		if (level >= 2 && (value & PTE_HUGE)) {
			walked->pages = level == 2 ? 512 * 512 : 512;
			return WALK_HUGE;
		}
		table = page_offset + (value & PTE_PFN_MASK);
	}
	return WALK_FAILED;
}

/* Frame of the page at `address`, which a present entry maps. */
static __always_inline __u64 walked_pfn(const struct walked *walked, __u64 address)
{
	__u64 pfn = (walked->entry & PTE_PFN_MASK) >> 12;

	/* In a huge entry the bits below its size are flags. */
	return (pfn & ~(walked->pages - 1)) + ((address >> 12) & (walked->pages - 1));
}

#define TABLE_PAGES 512

/* Slot of the first of them. The 16 begin on a boundary or with the area (do_fault_around()). */
static __always_inline __u32 window_first(__u64 address, __u64 area_start)
{
	__u32 slot = (address >> 12) % TABLE_PAGES, first = slot & ~15U;
	__u64 inside = (address - area_start) >> 12;

	if (inside < slot - first)
		first = slot - inside;
	if (first)
		first--;
	return first < TABLE_PAGES - WINDOW_PAGES ? first : TABLE_PAGES - WINDOW_PAGES;
}

/* Bit i: the page of slot first + i is present. entries: scratch, too large for the BPF stack. */
static __always_inline __u32 window_present(__u64 slot, __u32 first, __u64 entries[WINDOW_PAGES])
{
	__u32 present = 0, i;
	__u64 bit;

	_Static_assert(PTE_PRESENT == 1, "the entry's lowest bit");
	if (bpf_probe_read_kernel(entries, WINDOW_PAGES * sizeof(*entries),
				  (void *)((slot & ~4095ULL) + first * sizeof(__u64))))
		return 0;
	for (i = 0; i < WINDOW_PAGES; i++) {
		bit = entries[i] & PTE_PRESENT;
		/*
		 * No branch: the verifier of 7.2 takes every combination of them for another state.
		 */
		barrier_var(bit);
		present |= bit << i;
	}
	return present;
}

/* The entry `index` of the table that holds `slot`; 0 where unreadable. */
static __always_inline __u64 table_entry(__u64 slot, __u32 index)
{
	return kernel_word((slot & ~4095ULL) + index * 8ULL);
}

#endif /* MEMTOLL_PAGETABLE_BPF_H */
