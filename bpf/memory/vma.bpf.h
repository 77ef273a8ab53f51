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

/* 1 or 0, by arithmetic: a comparison is a branch. */
static __always_inline __u64 is_less(__u64 a, __u64 b)
{
	return ((~a & b) | (~(a ^ b) & (a - b))) >> 63;
}

/*
 * What the slot for the address holds, in the node of this entry; 0: nothing, or unreadable. Pivots
 * are bisected, one read each: all at once would take a quarter of the stack that 6.1 allows to a
 * whole chain of functions. A pivot is the last index below its slot; after the last slot comes
 * none, or 0.
 *
 * A global function without a branch on what was found: the verifier looks at it once. At each way
 * through each level of the tree was a third of all that it did at a start.
 */
__u64 maple_slot(__u64 entry, __u64 address)
{
	__u64 node = MAPLE_NODE(entry), type = MAPLE_TYPE(entry), count, pivot, beyond;
	__u64 next = 0, failed = 0, i = 0;
	int step;

	if (type < MAPLE_LEAF || type > MAPLE_INNER_GAPS || entry < MEMTOLL_PAGE_SIZE)
		return 0;
	count = type == MAPLE_INNER_GAPS ? MAPLE_PIVOTS_GAPS : MAPLE_PIVOTS;
	for (step = (MAPLE_PIVOTS + 1) / 2; step; step /= 2) {
		failed |= bpf_probe_read_kernel(&pivot, sizeof(pivot),
						(void *)(node + (i + step) * sizeof(__u64)));
		beyond = is_less(pivot, address) & (is_less(0, pivot) | is_less(i + step, 2)) &
			 is_less(i + step, count + 1);
		i += step * beyond;
	}
	if (failed || bpf_probe_read_kernel(&next, sizeof(next),
					    (void *)(node + (1 + count + i) * sizeof(__u64))))
		return 0;
	return next;
}

/* The struct vm_area_struct of the running process that holds the address, or 0. */
__u64 vma_find(__u64 address)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 entry = 0, type;
	int level;

	if (!bpf_core_field_exists(task->mm->mm_mt))
		return 0;
	entry = (__u64)BPF_CORE_READ(task, mm, mm_mt.ma_root);
	for (level = 0; level < MAPLE_DEPTH_MAX; level++) {
		type = MAPLE_TYPE(entry);
		entry = maple_slot(entry, address);
		if (!entry || type == MAPLE_LEAF)
			return entry;
	}
	return 0;
}

#endif /* MEMTOLL_VMA_BPF_H */
