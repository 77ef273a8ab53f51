/* SPDX-License-Identifier: GPL-2.0 */
/*
 * read_rest.bpf.h: where the tracepoints of system calls cost more than the overhead budget allows,
 * they are attached in short windows only, as those of faults are (fault_rest.bpf.h).
 *
 * Mapping calls are seen by the lock that they take meanwhile (probes/map_lock.bpf.c). What is read
 * outside of the windows the kernel counts for each thread (task->ioac.syscr, vfs_read() in
 * fs/read_write.c), and the reads in them speak for it. A thread's own are spoken for at once: those of a window, each for a part of what is
 * left.
 */
#ifndef MEMTOLL_READ_REST_BPF_H
#define MEMTOLL_READ_REST_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "wire/syscalls.h"
#include "state/losses.bpf.h"
#include "state/numbers.bpf.h"
#include "state/rates.bpf.h"
#include "state/thread.bpf.h"
#include "state/windows.bpf.h"

/* Each read speaks for such a part: a window of sixty has spoken for nearly all. */
#define READ_SPEAKERS 16

/* Reads that the kernel has counted for a thread; 0: it counts none. */
static __always_inline __u64 reads_counted(const struct task_struct *task)
{
	return bpf_core_field_exists(task->ioac.syscr) ? task->ioac.syscr : 0;
}

/* The thread is met: those before were not watched, unless it began while all were. */
static __always_inline void read_rest_begin(const struct task_struct *task, struct thread *thread,
					    bool older)
{
	if (!reads_are_counted && bpf_core_field_exists(task->ioac.syscr))
		reads_are_counted = 1;
	thread->reads_epoch = reads_epoch;
	thread->reads_seen = older ? reads_counted(task) : 0;
}

/*
 * A read begins, or the thread ends: what has been counted since the last one was not seen. After a
 * time in which not all reads were watched, for other reasons, nothing is known of those.
 */
static __always_inline void read_rest_catch_up(const struct task_struct *task,
					       struct thread *thread)
{
	struct memtoll_rates *rates = rates_here();
	__u64 counted = reads_counted(task), rested = 0;

	if (calls_rest && thread->reads_epoch == reads_epoch)
		rested = sub_sat(counted, thread->reads_seen);
	thread->reads_epoch = reads_epoch;
	/* With this one, which is counted at its end. */
	thread->reads_seen = counted + 1;
	if (!rested || !rates)
		return;
	rates->rested_reads += rested;
	thread->reads_rested += rested;
}

/* Reads are about to be left unwatched: those that have rested until now are known to have. */
static __always_inline void read_rest_settle(const struct task_struct *task, struct thread *thread)
{
	read_rest_catch_up(task, thread);
	thread->reads_seen = reads_counted(task);
}

/* How many of them the read that begins speaks for. */
static __always_inline __u64 read_rest_spoken_for(struct thread *thread)
{
	__u64 reads = (thread->reads_rested + READ_SPEAKERS - 1) / READ_SPEAKERS;

	thread->reads_rested -= reads;
	return reads;
}

#endif /* MEMTOLL_READ_REST_BPF_H */
