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

static __always_inline void rate_map(void)
{
	struct memtoll_rates *rates = rates_here();

	if (rates)
		rates->maps++;
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
