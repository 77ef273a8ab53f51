/* SPDX-License-Identifier: GPL-2.0 */
/* rates.bpf.h: hits of the probes, by what they cost. */
#ifndef MEMTOLL_RATES_BPF_H
#define MEMTOLL_RATES_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/rates.h"

struct rates_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct memtoll_rates);
};
extern struct rates_map rates SEC(".maps");

/*
 * Of this CPU. Only an interrupt or a preempting thread can write there at the same time: a count
 * may be off by one.
 */
static __always_inline struct memtoll_rates *rates_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&rates, &zero);
}

/*
 * What a mapping call costs depends on what it finds: its area, its stack, and who has used the
 * caches meanwhile. So one in MAP_TIMED is timed, drawn as faults are (fault_is_timed()). What takes
 * longer was interrupted.
 */
#define MAP_TIMED 16
#define MAP_TIMED_MOST_NS 50000
#define GOLDEN_RATIO 0x9e3779b9U /* its fraction, of 2^32 */

/* Counts a mapping call; when it began, where its programs are timed. */
static __always_inline __u64 rate_map(void)
{
	struct memtoll_rates *rates = rates_here();

	if (!rates || (__u32)++rates->maps * GOLDEN_RATIO > ~0U / MAP_TIMED)
		return 0;
	return bpf_ktime_get_ns();
}

static __always_inline void rate_advice(void)
{
	struct memtoll_rates *rates = rates_here();

	if (rates)
		rates->advices++;
}

/* Time in walks so far, on this CPU. */
static __always_inline __u64 walked_ns(void)
{
	struct memtoll_rates *rates = rates_here();

	return rates ? rates->walk_ns : 0;
}

/* What its programs took; walk_ns: what stacks had taken by walked_ns() before. */
static __always_inline void rate_map_part(__u64 ns, __u64 walk_ns)
{
	struct memtoll_rates *rates = rates_here();

	if (!rates)
		return;
	ns -= rates->walk_ns - walk_ns;
	if (ns <= MAP_TIMED_MOST_NS)
		rates->map_ns += MAP_TIMED * ns;
}

/* Of one that was passed over: no stack was looked at. */
static __always_inline void rate_passed_map_part(__u64 ns)
{
	struct memtoll_rates *rates = rates_here();

	if (rates && ns <= MAP_TIMED_MOST_NS)
		rates->passed_map_ns += MAP_TIMED * ns;
}

static __always_inline void rate_read(bool plain)
{
	struct memtoll_rates *rates = rates_here();

	if (!rates)
		return;
	rates->reads++;
	if (plain)
		rates->plain_reads++;
}

#endif /* MEMTOLL_RATES_BPF_H */
