// SPDX-License-Identifier: GPL-2.0
/*
 * execer: allocates a prime number of times, then becomes another program by exec(2).
 *
 * usage: execer [--wait] PROGRAM [ARGUMENT...]
 */
#include "workload.h"

#define CALLS 1019

static NOINLINE void *before_exec(void)
{
	void *block = calloc(1, 70000); /* SITE calloc */

	workload_sink = block;
	return block;
}

int main(int argc, char **argv)
{
	char **command = argv + 1;

	alarm(WORKLOAD_LIFE_S);
	if (argc > 1 && !strcmp(argv[1], "--wait")) {
		workload_wait();
		command++;
	}
	if (!*command)
		return 2;
	for (int i = 0; i < CALLS; i++)
		free(before_exec());
	workload_report("\"before\": %d", CALLS);
	execv(command[0], command);
	return 127;
}
