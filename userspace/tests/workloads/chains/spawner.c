// SPDX-License-Identifier: GPL-2.0
/*
 * spawner: makes threads that do nothing, one after the other.
 *
 * usage: spawner SECONDS (of its CPU time)
 */
#include "../workload.h"

#include <pthread.h>

static void *nothing(void *unused)
{
	return unused;
}

static NOINLINE int spawn(uint64_t until_ns)
{
	pthread_t thread;

	while (workload_clock(CLOCK_PROCESS_CPUTIME_ID) < until_ns)
		if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	alarm(WORKLOAD_LIFE_S);
	return spawn(workload_number("SECONDS", argc > 1 ? argv[1] : "1") * 1000000000ULL);
}
