/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fault_rest.bpf.h: where even to count faults costs more than the overhead budget allows, their
 * tracepoints are attached in short windows only (budget/fault_window.h).
 *
 * Outside of them faults rest: no program runs, and nobody pays, whether traced or not. How many
 * there were the kernel knows of each thread (task->min_flt): as many as it has counted between two
 * faults that were seen. Those of its process in the windows speak for them, each for a part, so
 * that no single one speaks for all: windows open by lot, whatever the program is at. What is left
 * when the rest, or the process, ends userspace gives to what was seen of it, in proportion; of one
 * that ended before enough was seen, as those do that live for a moment, to others like it
 * (ledger/unspoken.c). Major faults are seen by their ends, as ever, and end the rest
 * (budget/thinning.h).
 */
#ifndef MEMTOLL_FAULT_REST_BPF_H
#define MEMTOLL_FAULT_REST_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "state/numbers.bpf.h"
#include "state/rates.bpf.h"
#include "state/thread.bpf.h"
#include "state/windows.bpf.h"

/*
 * Each speaks for such a part: so small that those of a window with many have hardly less to speak
 * for than those of one with few. A program that is slow at one kind of fault, and quick at others,
 * would otherwise seem to have more of that.
 */
#define REST_SPEAKERS 1024
/* Of whom so many were seen speaks for itself alone. */
#define REST_SEEN_ENOUGH 16
#define REST_NO_POOL REST_POOLS

static __always_inline __u32 rest_pool_of(__u32 tgid)
{
	__u32 at = tgid & (REST_POOLS - 1);

	return rest_owners[at] == tgid ? at : REST_NO_POOL;
}

/* Its pool, or none where another process has it. */
static __always_inline __u32 rest_pool_make(const struct task_struct *task)
{
	__u32 tgid = task->tgid, at = tgid & (REST_POOLS - 1);

	if (rest_owners[at] == tgid)
		return at;
	if (rest_owners[at] || __sync_val_compare_and_swap(&rest_owners[at], 0, tgid))
		return REST_NO_POOL;
	rest_seen[at] = 0;
	return at;
}

static __always_inline void rest_add(const struct task_struct *task, __u64 faults)
{
	struct memtoll_rates *rates = rates_here();
	__u32 at;

	if (!rates || !faults)
		return;
	rates->rested_faults += faults;
	at = rest_pool_make(task);
	if (at < REST_POOLS)
		__sync_fetch_and_add(&rest_pools[at], faults);
	else
		__sync_fetch_and_add(&rest_open, faults);
}

/* A fault is seen: those that the kernel has counted since the last one were not. */
static __always_inline void rest_catch_up(const struct task_struct *task, struct thread *thread)
{
	__u64 counted = task->min_flt;

	if (faults_rest != FAULTS_ALL_SEEN)
		rest_add(task, sub_sat(counted, thread->order.minor_seen));
	/* With this one, which is counted at its end. */
	thread->order.minor_seen = counted + 1;
}

/* A thread is counted no further: so many more than were seen. */
static __always_inline void rest_count_out(const struct task_struct *task, __u64 faults)
{
	if (faults_rest != FAULTS_ALL_SEEN)
		rest_add(task, faults);
}

/* Whether the fault that ends is the one whose begin was seen last. */
static __always_inline bool rest_saw_begin(const struct task_struct *task,
					   const struct thread *thread, bool major)
{
	return faults_rest == FAULTS_ALL_SEEN || task->min_flt + major == thread->order.minor_seen;
}

/* What so many of them speak for. Another processor may take as much at the same time: it, then. */
static __always_inline __u64 rest_take(__u64 *pool, __u64 speakers)
{
	__u64 open = *pool;
	__u64 faults = open * (speakers < REST_SPEAKERS ? speakers : REST_SPEAKERS) / REST_SPEAKERS;

	return faults && __sync_val_compare_and_swap(pool, open, open - faults) == open ? faults :
											  0;
}

/* How many of those that rest the faults of a process that were looked at are to speak for. */
static __always_inline __u64 rest_spoken_for(__u32 tgid, __u64 speakers)
{
	__u32 at = rest_pool_of(tgid);

	if (faults_rest != FAULTS_REST || at >= REST_POOLS)
		return 0;
	rest_seen[at] += speakers;
	return rest_take(&rest_pools[at], speakers);
}

/* The process's last thread has been counted out. */
static __always_inline void rest_process_ends(__u32 tgid)
{
	__u32 at = rest_pool_of(tgid);

	if (at >= REST_POOLS || rest_seen[at] >= REST_SEEN_ENOUGH)
		return;
	__sync_fetch_and_add(&rest_open, __sync_fetch_and_and(&rest_pools[at], 0));
	rest_owners[at] = 0;
}

#endif /* MEMTOLL_FAULT_REST_BPF_H */
