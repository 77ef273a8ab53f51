/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fault_clock.bpf.h: what the programs of faults take of the program that has them.
 *
 * What a fault costs depends on what it begins: one that continues a run is the cheapest, and the
 * one that is calibrated. So one in FAULT_TIMED is timed, chosen by multiples of the golden ratio:
 * spread evenly, and never in step with a pattern of faults, without a division.
 */
#ifndef MEMTOLL_FAULT_CLOCK_BPF_H
#define MEMTOLL_FAULT_CLOCK_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "state/numbers.bpf.h"
#include "state/open_fault.bpf.h"
#include "state/rates.bpf.h"

#define FAULT_TIMED 64

/*
 * From another number on in each thread, or of threads that end before the first one is due none
 * would be: the root of two from one thread to the next, in terms of the golden ratio.
 */
#define TIMED_APART 0x7713f11fU

/*
 * Whether the program of this fault is timed: by the kernel's count, as what a fault looks at first
 * is what costs most where others have used the caches meanwhile.
 */
static __always_inline bool fault_is_timed(const struct task_struct *task)
{
	__u32 number = (__u32)task->min_flt + (__u32)task->pid * TIMED_APART;

	return number * GOLDEN_RATIO <= ~0U / FAULT_TIMED;
}

/* What its program took until now, stacks apart. */
static __always_inline void fault_account(const struct open_fault *fault, __u64 began_ns, __u64 now)
{
	struct memtoll_rates *rates = rates_here();

	if (rates)
		rates->fault_ns += FAULT_TIMED *
				   sub_sat(now - began_ns, rates->walk_ns - fault->timed_walk_ns);
}

/* Of one that was passed over, or followed in order. */
static __always_inline void fault_account_least(__u64 began_ns)
{
	struct memtoll_rates *rates = rates_here();
	__u64 ns = FAULT_TIMED * (bpf_ktime_get_ns() - began_ns);

	if (!rates)
		return;
	rates->fault_ns += ns;
	rates->least_fault_ns += ns;
}

#endif /* MEMTOLL_FAULT_CLOCK_BPF_H */
