/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fault_rest.bpf.h: where even to count faults costs more than the overhead budget allows, their
 * tracepoints are attached in short windows only (budget/fault_window.h).
 *
 * Outside of them faults rest: no program runs, and nobody pays, whether traced or not. How many
 * there were the kernel knows of each thread (task->min_flt): as many as it has counted between two
 * faults that were seen. Those in the windows speak for them, wherever they were, each for a part,
 * so that no single one speaks for all: windows open by lot, whatever the program is at, and threads
 * change their CPUs meanwhile. Major faults are seen by their ends, as ever, and end the rest
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
 * Each speaks for such a part. A window has some sixty faults, and those after a pause come first in
 * more windows than others: if they took most of what there is, a program that forks would have a
 * third more of what its parent touches. So a window takes a twentieth.
 */
#define REST_SPEAKERS 1024

static __always_inline void rest_add(__u64 faults)
{
	struct memtoll_rates *rates = rates_here();

	if (!rates || !faults)
		return;
	rates->rested_faults += faults;
	__sync_fetch_and_add(&rest_open, faults);
}

/* A fault is seen: those that the kernel has counted since the last one were not. */
static __always_inline void rest_catch_up(const struct task_struct *task, struct thread *thread)
{
	__u64 counted = task->min_flt;

	if (faults_rest != FAULTS_ALL_SEEN)
		rest_add(sub_sat(counted, thread->order.minor_seen));
	/* With this one, which is counted at its end. */
	thread->order.minor_seen = counted + 1;
}

/* A thread is counted no further: so many more than were seen. */
static __always_inline void rest_count_out(__u64 faults)
{
	if (faults_rest != FAULTS_ALL_SEEN)
		rest_add(faults);
}

/* Whether the fault that ends is the one whose begin was seen last. */
static __always_inline bool rest_saw_begin(const struct task_struct *task,
					   const struct thread *thread, bool major)
{
	return faults_rest == FAULTS_ALL_SEEN || task->min_flt + major == thread->order.minor_seen;
}

/* While they rest, and until few are left, each that is seen speaks. */
static __always_inline bool rest_is_spoken_for(void)
{
	return faults_rest == FAULTS_REST || rest_open >= REST_SPEAKERS;
}

/* Of how many of them the fault that was looked at is to speak. */
static __always_inline __u32 rest_spoken_for(void)
{
	__u64 faults = rest_open / REST_SPEAKERS;

	if (faults)
		__sync_fetch_and_sub(&rest_open, faults);
	return faults;
}

#endif /* MEMTOLL_FAULT_REST_BPF_H */
