// SPDX-License-Identifier: GPL-2.0
/*
 * many_files: reads a byte of each of many files, at real-time priority where it may have it: then
 * none of the kernel's workers gets this CPU in between.
 *
 * usage: many_files DIRECTORY COUNT
 * Makes the files first. Reports how many reads there were.
 */
#include <fcntl.h>
#include <sched.h>

#include "workload.h"

static int open_file(int directory, uint64_t number, int flags)
{
	char name[32];

	snprintf(name, sizeof(name), "%llu", (unsigned long long)number);
	return openat(directory, name, flags, 0600);
}

static NOINLINE int read_one(int fd)
{
	char byte;

	return read(fd, &byte, 1) == 1;
}

int main(int argc, char **argv)
{
	const struct sched_param priority = { .sched_priority = 1 };
	uint64_t count, reads = 0, i;
	int directory, fd;

	alarm(WORKLOAD_LIFE_S);
	if (argc != 3)
		return 2;
	directory = open(argv[1], O_RDONLY | O_DIRECTORY);
	count = workload_number("COUNT", argv[2]);
	for (i = 0; i < count; i++) {
		fd = open_file(directory, i, O_WRONLY | O_CREAT | O_TRUNC);
		if (fd < 0 || write(fd, "x", 1) != 1 || close(fd))
			return 1;
	}
	(void)sched_setscheduler(0, SCHED_RR, &priority);
	for (i = 0; i < count; i++) {
		fd = open_file(directory, i, O_RDONLY);
		if (fd < 0 || !read_one(fd) || close(fd))
			return 1;
		reads++;
	}
	workload_report("\"reads\": %llu", (unsigned long long)reads);
	return 0;
}
