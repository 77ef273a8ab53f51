/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vma.bpf.h: find the area of an address without the lock on a process's mappings.
 *
 * bpf_find_vma() only tries that lock, in vain while another thread maps or unmaps memory, and pays
 * for giving it back where interrupts are off. The areas are in a maple tree since 6.1
 * (lib/maple_tree.c), made to be walked under RCU, and BPF programs run under RCU. An answer may be
 * a moment old: its bounds are compared with the address.
 */
#ifndef MEMTOLL_VMA_BPF_H
#define MEMTOLL_VMA_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "wire/pages.h"

/* A pointer to a node carries the node's type in bits 3 to 6; nodes begin on a boundary of 256. */
#define MAPLE_TYPE(entry) ((entry) >> 3 & 15)
#define MAPLE_NODE(entry) ((entry) & ~255ULL)
#define MAPLE_LEAF 1
#define MAPLE_INNER_GAPS 3 /* an inner node that knows the gaps below it */
#define MAPLE_PIVOTS 15
#define MAPLE_PIVOTS_GAPS 9
#define MAPLE_DEPTH_MAX 8

/* Whether the slot of this number holds the address, or one before it does; ~0 where unreadable. */
static __always_inline __u64 maple_reaches(__u64 node, __u64 number, __u64 address)
{
	__u64 pivot;

	if (bpf_probe_read_kernel(&pivot, sizeof(pivot),
				  (void *)(node + (1 + number) * sizeof(__u64))))
		return ~0ULL;
	return pivot >= address || (number && !pivot);
}

/*
 * The struct vm_area_struct of the running process that holds the address, or 0. Pivots are
 * bisected, one read each: all at once would take a quarter of the stack that 6.1 allows to a whole
 * chain of functions.
 */
__u64 vma_find(__u64 address)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 entry = 0, node, type, count, reaches, i;
	int level, step;

	if (!bpf_core_field_exists(task->mm->mm_mt))
		return 0;
	entry = (__u64)BPF_CORE_READ(task, mm, mm_mt.ma_root);
	for (level = 0; level < MAPLE_DEPTH_MAX; level++) {
		type = MAPLE_TYPE(entry);
		if (type < MAPLE_LEAF || type > MAPLE_INNER_GAPS || entry < MEMTOLL_PAGE_SIZE)
			return 0;
		node = MAPLE_NODE(entry);
		count = type == MAPLE_INNER_GAPS ? MAPLE_PIVOTS_GAPS : MAPLE_PIVOTS;
		/*
		 * A pivot is the last index below its slot; after the last slot comes none, or 0.
		 */
		i = 0;
		for (step = (MAPLE_PIVOTS + 1) / 2; step; step /= 2) {
			if (i + step > count)
				continue;
			reaches = maple_reaches(node, i + step - 1, address);
			if (reaches > 1)
				return 0;
			if (!reaches)
				i += step;
		}
		if (bpf_probe_read_kernel(&entry, sizeof(entry),
					  (void *)(node + (1 + count + i) * sizeof(__u64))))
			return 0;
		if (type == MAPLE_LEAF)
			return entry;
	}
	return 0;
}

#endif /* MEMTOLL_VMA_BPF_H */
