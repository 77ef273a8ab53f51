// SPDX-License-Identifier: GPL-2.0
/*
 * probed: spends most of its time in the probes of malloc, calloc, realloc and free: where they are
 * hit, and where the functions return to.
 *
 * usage: probed SECONDS (of its CPU time)
 */
#include "../workload.h"

static volatile int back;

static NOINLINE void by_free(void)
{
	free(workload_sink);
	back++;
}

static NOINLINE void by_malloc(void)
{
	workload_sink = malloc(61);
	back++;
	by_free();
	back++;
}

static NOINLINE void by_calloc(void)
{
	workload_sink = calloc(3, 17);
	back++;
	by_free();
	back += 2;
}

static NOINLINE void by_realloc(void)
{
	workload_sink = realloc(malloc(23), 47);
	back++;
	by_free();
	back += 3;
}

static NOINLINE void all(void)
{
	by_malloc();
	by_calloc();
	by_realloc();
	back++;
}

int main(int argc, char **argv)
{
	uint64_t end_ns = workload_number("SECONDS", argc > 1 ? argv[1] : "1") * 1000000000ULL;
	int round;

	alarm(WORKLOAD_LIFE_S);
	while (workload_clock(CLOCK_PROCESS_CPUTIME_ID) < end_ns)
		for (round = 0; round < 101; round++)
			all();
	workload_report("\"done\": true");
	return 0;
}
