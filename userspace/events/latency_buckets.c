// SPDX-License-Identifier: GPL-2.0
#include "events/latency_buckets.h"

#include <linux/types.h>

#include "bpf/wire/sums.h"

uint64_t latency_bound(unsigned int bucket)
{
	unsigned int log, part;

	if (bucket == 0)
		return 0;
	if (bucket >= LATENCY_BUCKETS)
		return UINT64_MAX;
	log = LATENCY_FIRST_LOG + ((bucket - 1) >> LATENCY_SUB_LOG);
	part = (bucket - 1) & ((1U << LATENCY_SUB_LOG) - 1);
	return (1ULL << log) + ((uint64_t)part << (log - LATENCY_SUB_LOG));
}

uint64_t latency_calls(const uint32_t *counts)
{
	unsigned int bucket;
	uint64_t calls = 0;

	for (bucket = 0; bucket < LATENCY_BUCKETS; bucket++)
		calls += counts[bucket];
	return calls;
}
