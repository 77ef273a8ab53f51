/* SPDX-License-Identifier: GPL-2.0 */
/*
 * sums.h: keys and values of the maps in which the kernel side adds up. Keys have no padding, which
 * would be part of them.
 */
#ifndef MEMTOLL_WIRE_SUMS_H
#define MEMTOLL_WIRE_SUMS_H

#include "functions.h"
#include "types.h"

/* Key of the in-kernel sums: one allocator function called from one place. */
struct memtoll_call_key {
	__u32 tgid;
	__u32 fn;
	__u64 stack_id;
};

_Static_assert(sizeof(struct memtoll_call_key) == 16, "no padding in a map key");

/* Each addition costs the target some 6 ns: what follows from other counters is not counted. */
struct memtoll_call_sum {
	__u64 failed;
	__u64 bytes;	  /* bytes asked by the calls that succeeded */
	__u64 cpu_ns;	  /* on-CPU time between the two probes, everything inside included */
	__u64 map_cpu_ns; /* of it: inside mapping system calls */
	__u64 map_calls;
	__u64 faults;	    /* faults of the thread inside the call, all classes */
	__u64 fault_cpu_ns; /* of those that were timed */
	__u64 faults_timed;
	__u64 cleared_calls; /* glibc: calls that memset */
	__u64 cleared_bytes;
	__u64 cleared_cpu_ns; /* cpu_ns of those calls */
	__u64 cleared_faults; /* faults inside those calls */
	__u64 mmapped_calls;  /* glibc: blocks with a mapping of their own */
	__u64 untimed_calls;  /* return not seen or not wanted: not in cpu_ns, nor in latency */
	__u64 nested_calls;   /* made by another allocator function: in none of these */
	__u64 foreign_calls;  /* timed ones of no glibc: its rule of clearing does not hold */
	__u64 slow_calls;  /* of LATENCY_SLOW_NS and more, or with a fault or mapping call inside */
	__u64 slow_cpu_ns; /* cpu_ns of those calls */
	__u64 off_ns;	   /* time off the CPU inside: asleep, or preempted */
	__u64 lock_waits;  /* futex calls inside */
	__u64 lock_ns;	   /* wall time of those */
	/* realloc of blocks whose size was known: that grew, and by how much ... */
	__u64 grown_calls;
	__u64 grown_bytes;
	/* ... that came to another place, what was in them copied; not those that mremap moved */
	__u64 copied_calls;
	__u64 copied_bytes;
};

/*
 * Latency of calls: wall time between the probes, less their calibrated part of it, in buckets.
 * Log2-linear: bucket 0 holds what took less than 2^LATENCY_FIRST_LOG ns; from there on every power
 * of two is divided into 2^LATENCY_SUB_LOG buckets of equal width; the last one has no upper end.
 */
#define LATENCY_FIRST_LOG 5
#define LATENCY_SUB_LOG 2
#define LATENCY_LOGS 28
#define LATENCY_BUCKETS (1 + (LATENCY_LOGS << LATENCY_SUB_LOG))
#define LATENCY_PAIRS ((LATENCY_BUCKETS + 1) / 2) /* of 32-bit counters */

/* A call this long is a long one, however much the price of the probes varies. */
#define LATENCY_SLOW_NS 2048

/*
 * Value of map `calls`. The buckets may wrap: userspace takes differences once per slice. Every
 * timed call is in one of them: their sum is how many there were.
 */
struct memtoll_call {
	struct memtoll_call_sum sum;
	__u32 latency[LATENCY_BUCKETS + 1]; /* the last one is unused */
};

_Static_assert(sizeof(struct memtoll_call) % 8 == 0, "no padding in a map value");

/*
 * Value of map `call_places`. Each CPU has this many, for the first sites that it meets: found by
 * the key's hash, and looked up in line. A site that finds its place taken has its sums in
 * `calls_shared` and `calls` (state/row.bpf.h).
 */
#define CALL_PLACES_LOG 7
#define CALL_PLACES (1U << CALL_PLACES_LOG)

#define PLACE_FREE 0
#define PLACE_BEING_TAKEN 1
#define PLACE_TAKEN 2

struct memtoll_call_place {
	__u64 state; /* PLACE_* */
	struct memtoll_call_key key;
	struct memtoll_call call;
};

struct memtoll_map_key {
	__u32 tgid;
	__u16 map_fn;
	__u16 in_fn;
	__u64 stack_id;
};

_Static_assert(sizeof(struct memtoll_map_key) == 16, "no padding in a map key");

struct memtoll_map_sum {
	__u64 calls;
	__u64 bytes;
	__u64 cpu_ns;
	__u64 failed;
	__u64 populated;    /* faults inside that raise no event: MAP_POPULATE, mlock */
	__u64 populated_ns; /* of cpu_ns: what those took, which is their runs' */
};

/* Reclaim that the target suffered, its pages pushed out to swap, by whom, and brought in. */
enum memtoll_swap_what {
	SWAP_RECLAIM_DIRECT = 1, /* the machine is short of memory */
	SWAP_RECLAIM_MEMCG = 2,	 /* its memory cgroup is */
	SWAP_OUT_SELF = 3,	 /* while it reclaimed memory itself */
	SWAP_OUT_KSWAPD = 4,
	SWAP_OUT_OTHER = 5, /* by the reclaim of a process that is not traced */
	SWAP_IN_DEVICE = 6, /* pages it brought in, with read-ahead, from a device */
	SWAP_IN_ZSWAP = 7,
	SWAP_IN_ZERO = 8,     /* all-zero pages, which are not kept anywhere */
	SWAP_OUT_TRACED = 9,  /* by that of another process that is traced too */
	SWAP_OUT_SHARED = 10, /* of those that went out: pages of shared memory */
	SWAP_WHATS = 11,
};

struct memtoll_swap_key {
	__u32 tgid; /* 0: all processes that are not traced */
	__u32 what;
	__u64 stack_id; /* of reclaim: what it was in, a fault or a call */
};

_Static_assert(sizeof(struct memtoll_swap_key) == 16, "no padding in a map key");

struct memtoll_swap_sum {
	__u64 count;
	__u64 pages; /* reclaimed, or pushed out */
	__u64 cpu_ns;
	__u64 blocked_ns;
};

/* Key of the in-kernel sums: one file read from one place. */
struct memtoll_read_key {
	__u32 tgid;
	__u32 dev;
	__u64 inode;
	__u64 stack_id;
	__u32 read_fn;
	__u32 flags;
};

_Static_assert(sizeof(struct memtoll_read_key) == 32, "no padding in a map key");

struct memtoll_read_sum {
	__u64 calls;
	__u64 failed; /* and those at the end of the file, which read nothing */
	__u64 bytes;
	__u64 cpu_ns;	    /* major faults and reclaim inside are taken out, minor faults not */
	__u64 blocked_ns;   /* asleep; major faults and reclaim taken out, too */
	__u64 cached_calls; /* all was in the page cache: no page added, no wait */
	__u64 cached_bytes;
	__u64 filled_pages; /* pages that came into the page cache, read-ahead included */
	__u64 faults;	    /* minor ones of the thread inside */
	__u64 rested;	    /* of calls: counted by the kernel alone, and others spoke for them */
};

/* What walking stacks has cost a process: taken out of its time. */
struct memtoll_walk_key {
	__u32 tgid;
	__u32 unused[3];
};

_Static_assert(sizeof(struct memtoll_walk_key) == 16, "no padding in a map key");

struct memtoll_walk_sum {
	__u64 walks;
	__u64 ns;
};

/* Of a process: what passes by the tracepoints of system calls. */
struct memtoll_pass_key {
	__u32 tgid;
	__u32 unused[3];
};

_Static_assert(sizeof(struct memtoll_pass_key) == 16, "no padding in a map key");

struct memtoll_pass_sum {
	__u64 passes;	/* read(2) on sockets and pipes, looked at */
	__u64 syscalls; /* that no program looks at, counted in windows */
	__u64 passed;	/* reads that were only counted, before one on a socket or pipe */
};

/* How many calls came by a function's entry, and at its probe had the same arguments or not. */
struct memtoll_value_sum {
	__u64 entered;
	__u64 agreed;
	__u64 differed;
};

/*
 * Calls of a function by its entry, and those of them that went the slow way: with what was asked
 * for, or the block that was passed, in the register, or not.
 */
struct memtoll_slow_sum {
	__u64 entered;
	__u64 agreed;
	__u64 differed;
};

/* Pages that are thrown out: of files that the target has brought in, or of its own, to swap. */
enum memtoll_drop_what { DROP_FILE = 0, DROP_SWAP = 1 };

/* By whom, and for what. */
enum memtoll_drop_how {
	DROP_SELF = 1, /* a process of the target reclaims memory, as it wants some */
	DROP_KSWAPD = 2,
	DROP_OTHER = 3,	  /* another process does */
	DROP_MADVISE = 4, /* the target has asked for it: MADV_PAGEOUT */
	DROP_FADVISE = 5, /* POSIX_FADV_DONTNEED */
	DROP_ASKED = 6,	  /* somebody wrote to memory.reclaim, force_empty or drop_caches */
	DROP_CUT = 7,	  /* of a file that is cut short, deleted, or written past the page cache */
	DROP_HOWS = 8,
};

struct memtoll_drop_key {
	__u32 tgid; /* who does it; 0: kswapd */
	__u16 what;
	__u16 how;
	__u64 stack_id; /* DROP_MADVISE, DROP_FADVISE: of the call */
};

_Static_assert(sizeof(struct memtoll_drop_key) == 16, "no padding in a map key");

struct memtoll_drop_sum {
	__u64 pages;
};

/* Who throws out pages and is not traced, as it was called then. */
struct memtoll_dropper {
	char comm[16];
	char group[64]; /* last part of its memory cgroup's path */
};

/*
 * Requests of a userfaultfd's handler, by the number of their ioctl, in whose context it wakes the
 * thread that waits (include/uapi/linux/userfaultfd.h): wake, copy, zeropage, move, writeprotect,
 * continue, poison.
 */
#define ANSWER_REQUESTS 9

/* Faults that a handler has answered. */
struct memtoll_answer_key {
	__u32 tgid;	/* whose faults they are */
	__u32 tid;	/* the handler's thread */
	__u64 stack_id; /* where it answers; 0: its process is not traced */
};

_Static_assert(sizeof(struct memtoll_answer_key) == 16, "no padding in a map key");

/* From the fault's begin until the handler's request wakes its thread. */
struct memtoll_answer_sum {
	__u64 waits;
	__u64 wait_ns;
	__u64 requests[ANSWER_REQUESTS];
};

struct memtoll_answer {
	struct memtoll_answer_sum sum;
	__u32 latency[LATENCY_BUCKETS + 1]; /* as of calls; the last one is unused */
};

_Static_assert(sizeof(struct memtoll_answer) % 8 == 0, "no padding in a map value");

/* Who a handler's thread is. */
struct memtoll_handler {
	__u32 tgid;
	char comm[16];
	char process[16]; /* its process's first thread */
};

/* The longest wait of a process. */
struct memtoll_longest_wait {
	__u64 wait_ns;
	__u64 start_ns;
	__u64 address;
	__u64 stack_id; /* touched at */
	__u32 tid;
	__u32 handler_tid;
};

#endif /* MEMTOLL_WIRE_SUMS_H */
