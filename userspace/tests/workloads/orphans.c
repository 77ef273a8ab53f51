// SPDX-License-Identifier: GPL-2.0
/*
 * orphans: as daemons start: a process makes another and ends at once, which may be before that has
 * run at all.
 *
 * usage: orphans N
 *   N  processes of that kind, one after the other, with one calloc each at SITE calloc
 */
#include <sys/prctl.h>
#include <sys/wait.h>

#include "workload.h"

static NOINLINE void allocate(void)
{
	workload_sink = calloc(1, 4096); /* SITE calloc */
}

static void start_orphan(void)
{
	pid_t between = fork();

	if (!between) {
		if (!fork())
			allocate();
		_exit(0);
	}
}

int main(int argc, char **argv)
{
	uint64_t count, reaped = 0;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 2)
		return 2;
	count = workload_number(argv[0], argv[1]);
	/* Orphans become ours. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return 1;
	for (uint64_t i = 0; i < count; i++) {
		start_orphan();
		while (reaped < 2 * (i + 1) && wait(NULL) > 0)
			reaped++;
	}
	workload_report("\"reaped\": %llu", (unsigned long long)reaped);
	return reaped == 2 * count ? 0 : 1;
}
