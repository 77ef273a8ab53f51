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

/*
 * Time on the CPU since the stamp. Without a context switch all of it. Else by the scheduler's
 * account. Its clock differs between CPUs by what interrupts and the hypervisor took: where a
 * thread has moved, or the difference comes out impossible, its books alone count, which lag by up
 * to a tick at both ends and so are right on average.
 */
static __always_inline __u64 stamp_cpu_ns(const struct task_struct *task, const struct stamp *stamp,
					  __u64 now)
{
	__u64 wall_ns = now - stamp->ns;
	__s64 cpu_ns;

	if (task->nvcsw == stamp->voluntary && task->nivcsw == stamp->involuntary)
		return wall_ns;
	cpu_ns = task->se.sum_exec_runtime + now - task->se.exec_start - stamp->runtime_ns;
	if (stamp->cpu != bpf_get_smp_processor_id() || cpu_ns < 0 || (__u64)cpu_ns > wall_ns)
		cpu_ns = task->se.sum_exec_runtime - stamp->accounted_ns;
	return (__u64)cpu_ns < wall_ns ? cpu_ns : wall_ns;
}

#endif /* MEMTOLL_STAMP_BPF_H */
