/* SPDX-License-Identifier: GPL-2.0 */
/* open_calls.bpf.h: the allocator, mapping and read calls that a thread is in. */
#ifndef MEMTOLL_OPEN_CALLS_BPF_H
#define MEMTOLL_OPEN_CALLS_BPF_H

#include "vmlinux.h"

#include "state/stamp.bpf.h"
#include "wire/faults.h"
#include "wire/functions.h"

/* What happened inside a call, by kind, for its record should it take long. */
struct call_inside {
	__u32 faults[FAULT_KINDS]; /* void while open_call.faults is 0 */
	__u32 timed[FAULT_KINDS];
	__u64 fault_ns[FAULT_KINDS];
	__u32 map_calls[MAP_FN_IN_CALLS]; /* void while open_call.map_calls is 0 */
	__u64 map_ns;
};

/* How a function was entered that is probed further on, maybe in what it has called. */
struct entered {
	__u64 sp;
	__u64 end_sp;
	__u64 bp;
	__u64 ip;
	__u64 retried;
};

/* The outermost allocator call that a thread is in. */
struct open_call {
	__u64 sp;     /* stack pointer at the function's entry: identifies the call */
	__u64 end_sp; /* at the return that ends it: its own, or that of what it has called */
	__u64 bp;
	__u64 ip;     /* the function */
	__u64 caller; /* where it returns to; 0: not known yet (call_find_caller) */
	__u64 size;
	__u64 pointer;	  /* realloc, free: the block; posix_memalign: where to */
	__u64 heap_top;	  /* calloc: the break before the call */
	__u64 fresh_from; /* calloc in an arena: start of what mprotect opened during it */
	struct stamp start;
	__u64 map_cpu_ns;
	__u64 fault_cpu_ns;
	__u64 reclaim_cpu_ns;
	__u64 probe_ns; /* spent by our own programs at the start of runs of faults */
	__u32 map_calls;
	__u32 faults;
	__u32 faults_timed;
	__u32 glibc;
	__u64 chosen;	   /* by --sample */
	__u64 large_stack; /* free, realloc of a followed block: its reported stack */
	__u32 lock_waits;
	__u32 followed; /* its block has records of its own */
	__u64 retried;	/* where no block comes of it, it goes on with another try */
	__u64 old_size; /* realloc of a followed block; 0: not known */
	__u64 remapped; /* mremap has moved something inside */
	__u64 lock_ns;
	__u64 reclaim_ns; /* wall time; it may lie in a fault or mapping call */
	struct call_inside inside;
};

/*
 * How it ended. Not on the BPF stack: the verifier would follow each path for what it has written
 * there.
 */
struct call_end {
	__u64 cpu_ns;
	__u64 off_ns;  /* not on the CPU */
	__u64 net_ns;  /* wall time without the probes' calibrated part */
	__u64 cleared; /* bytes calloc's memset wrote */
	__u64 addr;    /* the block */
	__u16 flags;   /* BLOCK_* */
	__u8 failed;
	__u8 slept; /* it gave up the CPU */
};

/* The running median of a thread's calls of one function. */
struct pace {
	__u32 median_ns;
	__u32 calls; /* so far, up to PACE_YOUNG */
};

#define RSS_COUNTERS 4 /* MM_FILEPAGES, MM_ANONPAGES, MM_SWAPENTS, MM_SHMEMPAGES */

struct open_map_call {
	struct stamp start;
	__u64 addr;
	__u64 len;
	__u64 arg;
	__u64 reclaim_cpu_ns;
	__u64 minor_before; /* the thread's faults, by the kernel's count */
	__u64 major_before;
	__u64 rss_before[RSS_COUNTERS]; /* where it may fault pages in: of its process */
	__u64 cached_before;		/* pages of the file, where that is known */
	__u32 minor;			/* faults inside that we have seen */
	__u32 major;
	__u32 map_fn;
	__u16 flags;	    /* MAPPING_* */
	__u16 may_populate; /* it may fault pages in */
	__u16 uncounted;    /* its own time is nothing: shmat */
	__u16 failed;	/* it has ended so; here, where no path of the program is for one of both */
	__u32 draw;	/* enum map_draw */
	__u32 by_lock;	/* seen by the lock that it takes: map_lock.bpf.c */
	__u64 placed;	/* then: where the kernel has put a new mapping; 0: not yet */
	__u64 timed_ns; /* its programs are timed: since when; 0: they are not */
	__u64 walked_ns; /* then: what stacks had taken before its own */
};

/* What the kernel has faulted in inside a call: scratch of populate.bpf.c. */
struct populated {
	__u64 address;
	__u64 len; /* of the range it lies in; 0: unknown */
	__u64 faults;
	__u64 majors; /* of them */
	__u64 pages;
	__u64 cpu_ns; /* that they took; 0: unknown */
	__u64 blocked_ns;
	__u64 now;
	__u64 stack_id;
	__u64 reads; /* the pages are read, not written */
};

/* A read of a file that a thread is in. */
struct open_read {
	struct stamp start;
	__u64 inode;
	__u64 position; /* bytes into the file; of AIO: the array of its requests */
	__u32 dev;
	__u32 read_fn;
	__u32 flags;	    /* READ_* */
	__u32 faults;	    /* minor ones inside */
	__u64 minor_before; /* the thread's, by the kernel's count */
	__u64 fault_cpu_ns; /* major faults inside: they have their own toll */
	__u64 fault_blocked_ns;
	__u64 fault_switches; /* voluntary ones */
	__u64 reclaim_cpu_ns;
	__u64 reclaim_blocked_ns;
	__u64 filled_pages;
	__u64 began_ns;	  /* when its program began, if it is timed; else 0 */
	__u64 timed_ns;	  /* what that took until its own time began */
	__u64 times;	  /* it stands for so many, itself among them */
	__u64 rested;	  /* of these: that rested */
	__u64 last_bytes; /* of the last one of a file that ended */
	__u32 last_known; /* there was one, and none of something else since */
};

/* Where and for what the last page came into the page cache: what follows may belong to it. */
struct fill_place {
	__u64 mapping; /* the file's struct address_space */
	__u64 request; /* start of the call, or the fault's address */
};

#define READ_SITE_WORDS 32 /* of the stack's top: by which call sites are distinguished */

/* The call site of the last read: a loop that reads has the same stack again and again. */
struct read_site {
	__u64 ip;
	__u64 sp;
	__u64 hash; /* of the top of the stack */
	__u64 stack_id;
	__u64 words[READ_SITE_WORDS]; /* scratch: the top of the stack */
};

/* The stack of the last mapping call by this instruction at this depth. */
struct held_stack {
	__u64 ip; /* 0: none */
	__u64 sp;
	__u64 stack_id;
};

#define HELD_STACKS 4 /* a power of two: by the number of the call */

/*
 * Small mapping calls that were passed over since the last one that was looked at, whose stack and
 * time they are counted with (map_thinning.bpf.h).
 */
struct passed_calls {
	__u64 stack_id; /* 0: none was looked at yet */
	__u64 calls;
	__u64 failed;
	__u64 bytes;
	__u64 cpu_ns; /* of the one that was looked at */
};

#define PASSED_KINDS 2 /* mmap and munmap, by the numbers of the calls */

#endif /* MEMTOLL_OPEN_CALLS_BPF_H */
