/* SPDX-License-Identifier: GPL-2.0 */
/* fault_order.bpf.h: where a thread touches pages in order. */
#ifndef MEMTOLL_FAULT_ORDER_BPF_H
#define MEMTOLL_FAULT_ORDER_BPF_H

#include "vmlinux.h"

#include "state/walks.bpf.h"

/* Where pages are touched in order: see fault_streams.bpf.h. */
#define SWEEP_PLACES 4

/*
 * A word of the thread's memory in the kernel's direct map, valid as long as its page-table entry
 * does not change: direct_map.bpf.h.
 */
struct direct_word {
	__u64 slot; /* of the page-table entry; 0: not known */
	__u64 entry;
	__u64 word_at; /* in the direct map */
};

struct sweep_place {
	__u64 ip;
	__u64 sp;
	struct python_top top;
	struct direct_word frame_word;
	struct direct_word instruction_word;
	__u64 stack_id;
	__u64 until;   /* sweep.faults up to which the place is trusted */
	__u32 trusted; /* number of faults, as of the last look at its stack */
	__u32 flags;   /* RUN_* */
};

struct sweep {
	__u64 next;   /* the page in order; 0: none */
	__u64 faults; /* of the thread */
	struct sweep_place places[SWEEP_PLACES];
};

/*
 * Faults that follow the open one in order, and the conditions for one more: fault_sequence.bpf.h.
 */
struct order {
	__u64 next; /* the page that follows */
	__u64 ip;
	__u64 table; /* the entry that points to its page table, and where that is */
	__u64 table_at;
	__u32 area_generation;
	__u32 block_generation;
	__u16 followed;	  /* faults; the open fault stands for the first of all */
	__u16 left;	  /* that still may follow; 0: none */
	__u64 minor_seen; /* by the kernel's count, up to the last fault that was seen */
};

#endif /* MEMTOLL_FAULT_ORDER_BPF_H */
