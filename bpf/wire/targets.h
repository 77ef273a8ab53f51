/* SPDX-License-Identifier: GPL-2.0 */
/* targets.h: what each side knows of a traced process. */
#ifndef MEMTOLL_WIRE_TARGETS_H
#define MEMTOLL_WIRE_TARGETS_H

#include "python_offsets.h"
#include "types.h"

#define MEMTOLL_MEMSET_RANGES 8
/* More allocators than that no program has. */
#define MEMTOLL_CALLOCS 4

/* A range of code, [start, end). */
struct memtoll_range {
	__u64 start;
	__u64 end;
};

/*
 * Value of map `processes`, keyed by tgid: what userspace has found in a traced process. Userspace
 * replaces the whole value, so nothing that BPF counts is in it: that is in `process_states`.
 */
struct memtoll_target {
	__u32 unwind_table; /* of its mappings; 0: none yet */
	__u32 memset_count;
	struct memtoll_range memset[MEMTOLL_MEMSET_RANGES];
	__u64 calloc[MEMTOLL_CALLOCS]; /* addresses of the functions; 0: no more */
	struct memtoll_python_offsets python;
	__u32 memcpy_count;
	__u32 brief; /* one of a storm of new ones: struct memtoll_process */
	struct memtoll_range memcpy[MEMTOLL_MEMSET_RANGES];
};

enum memtoll_ended {
	ENDED_HELD = 1,
	ENDED_FREE = 2, /* nobody held it: its clocks are read when it is freed */
};

/*
 * Value of map `process_states`, keyed by tgid: how far a traced process has come. Made before its
 * row in `processes`, and from then on written by BPF alone,
 * unless userspace adds one that BPF has added at its fork: then it begins anew.
 */
struct memtoll_target_state {
	__u32 exec_pending; /* counting starts at the next exec: a command not yet started */
	__u32 ended; /* its last thread has exited; its number may become another's: memtoll_ended */
	/*
	 * Threads that began before may have faults that are not counted, and count from their first
	 * event; 0: none did. CLOCK_MONOTONIC.
	 */
	__u64 begun_ns;
	/* By the kernel's count, of threads that have ended, or whose counting has. */
	__u64 counted_minor_faults;
	__u64 counted_major_faults;
	/* As it ended: CPU time of its threads but the first, whose is known when it is freed. */
	__u64 others_cpu_ns;
};

/*
 * Values of `stopped` (settings.bpf.h): nothing is counted any more; threads are stopped one after
 * the other.
 */
enum memtoll_stopped {
	STOPPED = 1,
	STOPPING = 2,
};

/* A program whose dynamic loader is probed while it maps libraries: start.bpf.c. */
struct memtoll_start {
	__u64 state_at; /* address of _r_debug.r_state */
	__u32 adding;	/* libraries were about to be mapped */
	__u32 mapped;	/* and all are */
	__u32 awaited;	/* its tracer wants to hear of that */
};

/*
 * Counts of traced processes by the lowest bits of their numbers (processes.bpf.h): a power of two.
 * One in so many of the other processes has the bits of a traced one and costs a look-up more.
 */
#define PROCESS_FILTER_SIZE 4096

#endif /* MEMTOLL_WIRE_TARGETS_H */
