/* SPDX-License-Identifier: GPL-2.0 */
/* buckets.bpf.h: which bucket of a latency a time falls in (wire/sums.h). */
#ifndef MEMTOLL_BUCKETS_BPF_H
#define MEMTOLL_BUCKETS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/sums.h"

/* 1 where value > least, else 0; both below 2^63. Kept free of branches. */
static __always_inline __u64 above(__u64 value, __u64 least)
{
	__u64 difference = least - value;

	barrier_var(difference);
	return difference >> 63;
}

/*
 * Position of the highest bit that is set, by halves: there is no instruction for it. value > 0, of
 * 32 bits. Branches would be 32 ways for the verifier, each of which it follows to the program's
 * end.
 */
static __always_inline __u32 log2_of(__u64 value)
{
	__u32 log = above(value, 0xffff) << 4, part;

	value >>= log;
	part = above(value, 0xff) << 3;
	value >>= part;
	log |= part;
	part = above(value, 0xf) << 2;
	value >>= part;
	log |= part;
	part = above(value, 0x3) << 1;
	value >>= part;
	return log | part | value >> 1;
}

static __always_inline __u32 latency_bucket(__u64 ns)
{
	__u32 log;

	if (ns < 1ULL << LATENCY_FIRST_LOG)
		return 0;
	if (ns >> 32)
		return LATENCY_BUCKETS - 1;
	log = log2_of(ns);
	return 1 + ((log - LATENCY_FIRST_LOG) << LATENCY_SUB_LOG) +
	       (((__u32)ns >> (log - LATENCY_SUB_LOG)) & ((1U << LATENCY_SUB_LOG) - 1));
}

#endif /* MEMTOLL_BUCKETS_BPF_H */
