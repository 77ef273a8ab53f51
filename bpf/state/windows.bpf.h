/* SPDX-License-Identifier: GPL-2.0 */
/*
 * windows.bpf.h: when hits are counted and ends are seen: the windows that the overhead budget
 * opens.
 */
#ifndef MEMTOLL_WINDOWS_BPF_H
#define MEMTOLL_WINDOWS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/faults.h"
#include "state/thread.bpf.h"

#define FN_MASK 31 /* of the bits and the array below */

/* Bit n: function n is attached idle, its calls are not counted: governor.c. */
extern volatile __u32 idle_fns;
/*
 * A lease: windows are open until this time (~0: without end), which userspace extends again and
 * again. If it is stopped or gets no CPU, none stays open. The program that first finds the time to
 * be over sets shut_ns; from then on hits are counted as idle, until the lease is extended.
 * Programs cannot detach probes: a hit still costs its trap.
 */
extern volatile __u64 open_until_ns;
extern volatile __u64 shut_ns;
/* The same for windows in which ends of minor faults are seen, and system calls counted. */
extern volatile __u64 timed_until_ns;
extern volatile __u64 timed_shut_ns;
/* When the probe of function n was last detached: returns of calls before that are not seen. */
extern volatile __u64 detached_ns[FN_MASK + 1];
/* Since when read(2) is watched, and its ends are seen; ~0: it is not. */
extern volatile __u64 reads_watched_ns;
/* The same for mapping calls, and the other calls that read. */
extern volatile __u64 calls_watched_ns;
/* And for the lock by which mapping calls are seen while they rest: map_lock.bpf.c. */
extern volatile __u64 locks_watched_ns;
/* Set by userspace while a sampling window is open: the ends of minor faults are seen. */
extern volatile __u32 ends_seen;
/* The part of 2^32 of faults that are looked at, where they are too many; ~0: all are. */
extern volatile __u32 fault_draw;
/* Set by userspace, enum memtoll_faults_rest: whether faults are seen in windows only. */
extern volatile __u32 faults_rest;
/* Set by userspace: whether system calls have been, or are, seen in windows only: read_rest.bpf.h. */
extern volatile __u32 calls_rest;
/* Set by userspace while it has the iterator look what the kernel has counted for each thread. */
extern volatile __u32 reads_settle;
/* Raised by userspace when reads are watched again after a time in which not all were. */
extern volatile __u32 reads_epoch;
/* The kernel counts reads: set as soon as a thread was met. */
extern volatile __u32 reads_are_counted;
/*
 * Faults that have rested and for whom no other has spoken yet: of each process, by the lowest bits
 * of its number; in rest_open those of processes that have no place there, or have ended unseen.
 * Userspace takes what is left (session/rested.c).
 */
#define REST_POOLS 1024		      /* a power of two */
extern __u32 rest_owners[REST_POOLS]; /* tgid; 0: none */
extern __u32 rest_seen[REST_POOLS];   /* its faults that were seen in windows */
extern __u64 rest_pools[REST_POOLS];
extern __u64 rest_open;

/*
 * Called where the clock was read anyway: whether windows are over is not worth a reading of its
 * own.
 */
static __always_inline void windows_end(__u64 now)
{
	if (now > open_until_ns && shut_ns <= open_until_ns)
		shut_ns = now;
	if (now > timed_until_ns && timed_shut_ns <= timed_until_ns)
		timed_shut_ns = now;
}

static __always_inline bool timed_window_is_open(void)
{
	return timed_shut_ns <= timed_until_ns;
}

/* Whether the ends of minor faults are seen. */
static __always_inline bool ends_are_seen(void)
{
	return ends_seen && timed_window_is_open();
}

static __always_inline bool calls_are_watched(void)
{
	return calls_watched_ns != ~0ULL;
}

/* In a mapping call whose end will be seen. */
static __always_inline bool in_map(const struct thread *thread)
{
	return thread->map.map_fn &&
	       thread->map.start.ns >= (thread->map.by_lock ? locks_watched_ns : calls_watched_ns);
}

/* In a read of a file whose end will be seen. */
static __always_inline bool in_read(const struct thread *thread)
{
	return thread->read.read_fn &&
	       thread->read.start.ns >=
		       (thread->read.read_fn == READ_FN_READ ? reads_watched_ns : calls_watched_ns);
}

#endif /* MEMTOLL_WINDOWS_BPF_H */
