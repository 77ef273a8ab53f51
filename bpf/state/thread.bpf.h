/* SPDX-License-Identifier: GPL-2.0 */
/* thread.bpf.h: everything known of a thread. */
#ifndef MEMTOLL_THREAD_BPF_H
#define MEMTOLL_THREAD_BPF_H

#include "vmlinux.h"

#include "state/fault_order.bpf.h"
#include "state/open_calls.bpf.h"
#include "state/open_fault.bpf.h"
#include "state/stamp.bpf.h"
#include "state/walks.bpf.h"
#include "wire/records.h"
#include "wire/stacks.h"
#include "wire/sums.h"

/*
 * Everything known of a thread. Written by the thread itself only. What every fault in order
 * looks at comes first, in one cache line: clearing a page leaves little in the first cache.
 */
struct thread {
	__u32 in_fn;
	__u32 drained; /* drain_epoch this thread has last obeyed */
	struct order order;
	__u32 careful; /* so many faults more are all looked at: fault_thinning.bpf.h */
	__u32 idle_hits;
	__u32 passes;	    /* read(2) on sockets and pipes, not flushed yet */
	__u32 passed;	    /* reads that were only counted, and for whom one of these spoke */
	__u32 syscalls;	    /* system calls counted, not flushed yet */
	__u32 abandoned;    /* one of its calls was given up without its return */
	__u32 counted_out;  /* its faults, by the kernel's count, are in its process's sum */
	__u32 unbegun;	    /* no mapping call has begun since it was met; it may be in one */
	__u32 reads_epoch;  /* in which its reads were seen last */
	__u64 reads_seen;   /* by the kernel's count, up to the last read that was seen */
	__u64 reads_rested; /* for whom none has spoken yet */
	__u64 minor_base;   /* its faults, by the kernel's count, before the first event */
	__u64 major_base;
	__u64 made_ns;	    /* what making this state took: told when it ends */
	__u64 entry_ip;	    /* its last uprobe at an entry; 0: none yet */
	__u64 return_ip;    /* where it continued after its last one at a return */
	__u64 returned_ns;  /* from its last call; 0: none yet */
	__u64 passed_ns;    /* its last hit that was not counted */
	__u64 gap_ns;	    /* a tenth of its gaps between calls are below, about */
	__u64 idle_gap_ns;  /* the same between hits that were not counted */
	__s64 sample_left;  /* bytes to the next chosen place */
	__u64 sampling;	    /* the first place was drawn */
	__u64 site_unknown; /* site_by_notes(): not all of the open call's callers have a note */
	struct entered entered; /* scratch */
	struct open_call call;
	struct call_end ended; /* scratch */
	struct open_map_call map;
	struct held_stack held[HELD_STACKS];
	struct passed_calls passed_maps[PASSED_KINDS];
	__u32 held_draws;
	__u32 exempt; /* its fault was not drawn and speaks for itself: fault_thinning.bpf.h */
	struct populated populated;	/* scratch */
	struct memtoll_mapping mapping; /* on its way: too large for the BPF stack */
	struct open_fault fault;
	__u64 answer_tail_ns; /* from a handler's answer to the fault's end, a running mean */
	__u64 drop_stack_id;  /* of its call that throws pages out, and when that began */
	__u64 drop_began_ns;
	struct stamp reclaim;
	__u32 reclaiming; /* SWAP_RECLAIM_*, or 0 */
	__u64 frees;	  /* since its last large request */
	__u64 futex_ns;	  /* since when it is in a futex call inside the allocator; 0: it is not */
	struct pace paces[FN_COUNT];
	struct memtoll_run run;	      /* run.faults == 0: none open */
	struct memtoll_series series; /* the runs before it; series.count == 0: none */
	struct sweep sweep;
	struct area_cache area;
	struct area_query query; /* scratch: too large for the BPF stack */
	struct open_read read;
	struct memtoll_read_key read_key; /* scratch: too large for the BPF stack */
	struct memtoll_read reads;	  /* reads.reads == 0: none open */
	struct read_site read_site;
	struct memtoll_fill fill; /* fill.pages == 0: none open */
	struct fill_place fill_place;
	/*
	 * From here on scratch only, which a new state has from the one before it in its place:
	 * thread_clear().
	 */
	struct memtoll_stack stack;
	struct memtoll_file file;
	struct unwind walk;
	struct memtoll_stack sample_stack; /* of the sampling interrupt */
	struct unwind sample_walk;
	__u64 sample_walk_ns;	   /* rates->walk_ns when it began */
	struct python_walk python; /* two for the same reason */
	struct python_walk sample_python;
};

#endif /* MEMTOLL_THREAD_BPF_H */
