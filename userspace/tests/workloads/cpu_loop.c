// SPDX-License-Identifier: GPL-2.0
/*
 * cpu_loop: computes and allocates nothing (casebook, entry 8).
 *
 * usage: cpu_loop MILLISECONDS [--wait]
 * Runs until it has used that much CPU time, so that a busy machine does not shorten it.
 */
#include "workload.h"

static NOINLINE uint64_t compute(uint64_t state)
{
	for (int i = 0; i < 100000; i++)
		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state;
}

int main(int argc, char **argv)
{
	uint64_t limit, state = 1, rounds = 0;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 2)
		return 2;
	limit = workload_number(argv[0], argv[1]) * 1000000ULL;
	if (argc > 2 && !strcmp(argv[2], "--wait"))
		workload_wait();
	while (workload_clock(CLOCK_PROCESS_CPUTIME_ID) < limit) {
		state = compute(state);
		rounds++;
	}
	workload_report("\"rounds\": %llu, \"state\": %llu", (unsigned long long)rounds,
			(unsigned long long)state);
	return 0;
}
