/* SPDX-License-Identifier: GPL-2.0 */
/*
 * latency_buckets.h: the histogram of a call site's times, as bpf/probes/latency.bpf.h counts them.
 */
#ifndef MEMTOLL_LATENCY_BUCKETS_H
#define MEMTOLL_LATENCY_BUCKETS_H

#include <stdint.h>

/*
 * Lower bound in ns of a bucket, and with bucket + 1 its upper one. The last bucket has none:
 * UINT64_MAX.
 */
uint64_t latency_bound(unsigned int bucket);

/* How many calls are in the LATENCY_BUCKETS: each that was timed is in one. */
uint64_t latency_calls(const uint32_t *counts);

#endif /* MEMTOLL_LATENCY_BUCKETS_H */
