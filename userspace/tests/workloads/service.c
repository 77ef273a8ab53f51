// SPDX-License-Identifier: GPL-2.0
/*
 * service: processes that all do the same, as a server's do.
 *
 * usage: service fork|exec WORKERS
 * Each worker, one of WORKERS at a time of PARALLEL, makes BLOCKS small blocks and FILLED large ones,
 * which it writes to. exec: each is a program of its own, at addresses of its own.
 */
#include <sys/wait.h>

#include "workload.h"

#define PARALLEL 7
#define BLOCKS 31
#define FILLED 5
#define LARGE 100003
#define PAGE 4096

static NOINLINE void *small_block(void)
{
	void *volatile block = malloc(1009); /* SITE small */

	return block;
}

static NOINLINE char *large_block(void)
{
	char *volatile block = malloc(LARGE); /* SITE large */

	return block;
}

static NOINLINE void fill(volatile char *block)
{
	for (long at = 0; at < LARGE; at += PAGE)
		block[at] = 1; /* SITE fill */
}

static int work(void)
{
	alarm(WORKLOAD_LIFE_S);
	for (int i = 0; i < BLOCKS; i++)
		free(small_block());
	/* Kept: each has pages of its own. */
	for (int i = 0; i < FILLED; i++)
		fill(large_block());
	return 0;
}

static void reap(void)
{
	int status;

	if (wait(&status) < 0 || status)
		_exit(1);
}

int main(int argc, char **argv)
{
	uint64_t workers;

	alarm(WORKLOAD_LIFE_S);
	if (argc == 2 && !strcmp(argv[1], "work"))
		return work();
	if (argc != 3)
		return 2;
	workers = workload_number(argv[0], argv[2]);
	for (uint64_t i = 0; i < workers; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (!pid && strcmp(argv[1], "exec"))
			_exit(work());
		if (!pid) {
			execl("/proc/self/exe", argv[0], "work", NULL);
			_exit(127);
		}
		if (i + 1 >= PARALLEL)
			reap();
	}
	for (uint64_t i = 0; i < workers && i + 1 < PARALLEL; i++)
		reap();
	workload_report("\"workers\": %llu, \"small\": %llu, \"large\": %llu",
			(unsigned long long)workers, (unsigned long long)(workers * BLOCKS),
			(unsigned long long)(workers * FILLED));
	return 0;
}
