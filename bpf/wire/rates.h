/* SPDX-License-Identifier: GPL-2.0 */
/* rates.h: hits of the probes, which the overhead is reckoned from. */
#ifndef MEMTOLL_WIRE_RATES_H
#define MEMTOLL_WIRE_RATES_H

#include "functions.h"
#include "types.h"

/* Times between two hits, of which those of GAP_MOST_NS and more say nothing of the probes. */
#define GAP_MOST_NS 16384

struct memtoll_gaps {
	__u64 count;
	__u64 low_ns; /* sum over them of the thread's running lowest tenth */
};

/*
 * Hits of the probes on all traced processes, by what they cost: the governor reads them many times
 * a second. Value of map `rates`.
 */
struct memtoll_rates {
	__u64 calls[FN_COUNT]; /* counted entries, nested ones with them */
	__u64 idle[FN_COUNT];  /* hits that were not counted: no window was open */
	__u64 faults;
	__u64 fault_ns;	      /* in their programs, stacks apart: one in FAULT_TIMED, times it */
	__u64 least_fault_ns; /* of it, of those that were passed over or followed in order */
	__u64 samples;
	__u64 sample_ns; /* in their programs, stacks apart */
	__u64 maps;
	__u64 map_ns;	     /* in their programs, stacks apart: one in MAP_TIMED, times it */
	__u64 passed_map_ns; /* the same of those that were passed over */
	__u64 advices;	     /* of maps, those that would be missed while calls rest */
	__u64 reads;
	__u64 plain_reads;     /* of these by read(2), which sockets are read by, too */
	__u64 other_reads;     /* read(2) on sockets and pipes, flushed in batches */
	__u64 unwatched_reads; /* of files while read(2), or any call, was not watched */
	__u64 unwatched_maps;  /* mapping calls while none was watched */
	__u64 syscalls;	       /* that no program looks at, counted in windows */
	__u64 walk_ns;	       /* stacks looked at, in whatever program */
	__u64 thread_ns;       /* threads' states made, and their ends */
	__u64 passed_faults;   /* counted and not looked at: fault_thinning.bpf.h */
	__u64 rested_faults;   /* counted by the kernel alone: fault_rest.bpf.h */
	__u64 passed_open;     /* of those passed over, for whom no other has spoken yet */
	__u64 thinned_faults;  /* of which it was drawn who is looked at */
	__u64 ordered_faults;  /* of faults, those that followed in order */
	__u64 inside_faults;   /* of faults, those in a call of the allocator */
	__u64 waited_faults;   /* that waited for something */
	__u64 walked_calls;    /* mapping calls outside of the allocator: stack looked at */
	__u64 read_ns;	       /* of reads, in their programs: one in READ_TIMED, times it */
	__u64 thinned_reads;   /* of which it was drawn who is looked at, and timed */
	__u64 passed_reads;    /* of files or not: counted and not looked at */
	__u64 passed_reads_open;
	__u64 rested_reads;   /* of files or not: counted by the kernel alone: read_rest.bpf.h */
	__u64 waited_read_ns; /* of reads of files that waited or brought pages in */
	__u64 held_calls;     /* and those with the last one of the same instruction */
	__u64 brief_starts;   /* processes that came too fast to be looked at: process.bpf.c */
	__u64 drawn_maps;     /* small mapping calls looked at that might have been passed over */
	__u64 passed_maps;    /* and those that were: map_thinning.bpf.h */
	struct memtoll_gaps gaps;      /* from a call's return to the thread's next call */
	struct memtoll_gaps idle_gaps; /* from one hit that was not counted to the next */
};

#endif /* MEMTOLL_WIRE_RATES_H */
