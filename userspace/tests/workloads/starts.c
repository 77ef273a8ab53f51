// SPDX-License-Identifier: GPL-2.0
/*
 * starts: programs, one after the other as fast as they come, and what the kernel has counted for them.
 *
 * usage: starts COUNT [--wait]
 * Each is this program again, which touches PAGES pages and ends.
 */
#include <sys/resource.h>
#include <sys/wait.h>

#include "workload.h"

#define PAGES 7
#define PAGE 4096

static char pages[PAGES * PAGE];

static int start(char *program)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		execl(program, program, NULL);
		_exit(1);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

static double seconds(const struct rusage *usage)
{
	return usage->ru_utime.tv_sec + usage->ru_stime.tv_sec +
	       (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
	struct rusage usage;
	uint64_t count;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 2) {
		for (volatile char *page = pages; page < pages + sizeof(pages); page += PAGE)
			*page = 1;
		return 0;
	}
	count = workload_number(argv[0], argv[1]);
	if (argc > 2 && !strcmp(argv[2], "--wait"))
		workload_wait();
	for (uint64_t i = 0; i < count; i++)
		if (start(argv[0]))
			return 1;
	getrusage(RUSAGE_CHILDREN, &usage);
	workload_report("\"started\": %llu, \"child_faults\": %ld, \"child_seconds\": %f",
			(unsigned long long)count, usage.ru_minflt, seconds(&usage));
	return 0;
}
