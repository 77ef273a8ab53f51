// SPDX-License-Identifier: GPL-2.0
/*
 * forker: a parent and its children, each with its own prime number of callocs.
 *
 * usage: forker [SIZE] [--wait]
 * The children run at the same time as the parent and as each other.
 */
#include <sys/wait.h>

#include "workload.h"

#define CHILDREN 5
#define PARENT_CALLS 211

static const uint64_t counts[CHILDREN] = { 223, 227, 229, 233, 239 };

static NOINLINE void *parent_block(uint64_t size)
{
	void *block = calloc(size, 1); /* SITE parent */

	workload_sink = block;
	return block;
}

static NOINLINE void *child_block(uint64_t size)
{
	void *block = calloc(size, 1); /* SITE child */

	workload_sink = block;
	return block;
}

static _Noreturn void child(uint64_t calls, uint64_t size)
{
	alarm(WORKLOAD_LIFE_S);
	for (uint64_t i = 0; i < calls; i++)
		free(child_block(size));
	_exit(0);
}

int main(int argc, char **argv)
{
	uint64_t size = 100000, total = 0;
	pid_t pids[CHILDREN];
	int failed = 0;

	alarm(WORKLOAD_LIFE_S);
	if (argc > 1)
		size = workload_number(argv[0], argv[1]);
	if (argc > 2 && !strcmp(argv[2], "--wait"))
		workload_wait();
	for (int i = 0; i < CHILDREN; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			return 1;
		if (pids[i] == 0)
			child(counts[i], size);
		total += counts[i];
	}
	for (uint64_t i = 0; i < PARENT_CALLS; i++)
		free(parent_block(size));
	for (int i = 0; i < CHILDREN; i++) {
		int status;

		if (waitpid(pids[i], &status, 0) != pids[i] || status)
			failed = 1;
	}
	workload_report("\"parent\": %d, \"children\": %llu, \"size\": %llu, "
			"\"child_pids\": [%d, %d, %d, %d, %d]",
			PARENT_CALLS, (unsigned long long)total, (unsigned long long)size, pids[0],
			pids[1], pids[2], pids[3], pids[4]);
	return failed;
}
