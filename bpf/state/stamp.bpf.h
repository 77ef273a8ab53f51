/* SPDX-License-Identifier: GPL-2.0 */
/* stamp.bpf.h: a moment in the life of a thread, to measure from. */
#ifndef MEMTOLL_STAMP_BPF_H
#define MEMTOLL_STAMP_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

/* A moment in a thread's life, to measure from. */
struct stamp {
	__u64 ns;
	__u64 accounted_ns; /* CPU time in the scheduler's books */
	__u64 runtime_ns;   /* the same, plus what passed since */
	__u64 voluntary;    /* context switches */
	__u64 involuntary;
	__u64 cpu;
};

static __always_inline void stamp_take(const struct task_struct *task, struct stamp *stamp)
{
	stamp->ns = bpf_ktime_get_ns();
	stamp->accounted_ns = task->se.sum_exec_runtime;
	stamp->runtime_ns = stamp->accounted_ns + stamp->ns - task->se.exec_start;
	stamp->voluntary = task->nvcsw;
	stamp->involuntary = task->nivcsw;
	stamp->cpu = bpf_get_smp_processor_id();
}

#define TICK_NS 4000000 /* CONFIG_HZ=250; of others that are in use at most 10 ms */

/*
 * Time on the CPU since the stamp. Without a context switch all of it. Else by the scheduler's
 * account, which is its books and what passed since. Its clock differs between CPUs by what
 * interrupts and the hypervisor took: where the difference comes out impossible, its books alone
 * count, which lag by up to a tick at both ends. So they do where a thread was preempted, went on
 * on another CPU, and has run for longer than a tick: of calls that take milliseconds the difference
 * would be wrong by as much again.
 */
static __always_inline __u64 stamp_cpu_ns(const struct task_struct *task, const struct stamp *stamp,
					  __u64 now)
{
	__u64 wall_ns = now - stamp->ns, books_ns;
	__s64 cpu_ns;
	bool moved;

	if (task->nvcsw == stamp->voluntary && task->nivcsw == stamp->involuntary)
		return wall_ns;
	cpu_ns = task->se.sum_exec_runtime + now - task->se.exec_start - stamp->runtime_ns;
	books_ns = task->se.sum_exec_runtime - stamp->accounted_ns;
	moved = task->nvcsw == stamp->voluntary && stamp->cpu != bpf_get_smp_processor_id();
	if (cpu_ns < 0 || (__u64)cpu_ns > wall_ns ||
	    (moved && (books_ns > TICK_NS || (__u64)cpu_ns > books_ns)))
		cpu_ns = books_ns;
	return (__u64)cpu_ns < wall_ns ? cpu_ns : wall_ns;
}

#endif /* MEMTOLL_STAMP_BPF_H */
