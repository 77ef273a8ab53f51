// SPDX-License-Identifier: GPL-2.0
/*
 * deep: malloc and free of 100 KiB from below so many functions, and what a pair of them costs: the
 * best of many batches, for a neighbour only ever slows down.
 *
 * usage: deep DEPTH BATCHES
 */
#include "../workload.h"

#define PAIRS 101

static volatile int back;

static NOINLINE uint64_t pairs(uint64_t batches)
{
	uint64_t best_ns = UINT64_MAX;

	while (batches--) {
		uint64_t start_ns = workload_clock(CLOCK_MONOTONIC), ns;
		int i;

		for (i = 0; i < PAIRS; i++) {
			workload_sink = malloc(100UL << 10);
			free(workload_sink);
		}
		ns = workload_clock(CLOCK_MONOTONIC) - start_ns;
		if (ns < best_ns)
			best_ns = ns;
	}
	return best_ns / PAIRS;
}

static NOINLINE uint64_t below(uint64_t depth, uint64_t batches)
{
	uint64_t ns = depth > 1 ? below(depth - 1, batches) : pairs(batches);

	back++;
	return ns;
}

int main(int argc, char **argv)
{
	uint64_t depth, batches;

	if (argc != 3)
		return 2;
	depth = workload_number("DEPTH", argv[1]);
	batches = workload_number("BATCHES", argv[2]);
	alarm(WORKLOAD_LIFE_S);
	workload_report("\"pair_ns\": %llu", (unsigned long long)below(depth, batches));
	return 0;
}
