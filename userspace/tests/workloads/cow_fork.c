// SPDX-License-Identifier: GPL-2.0
/*
 * cow_fork: children write to pages they share with their parent, which copies and does not clear
 * them (casebook, entry 8).
 *
 * usage: cow_fork BYTES CHILDREN
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "workload.h"

#define PAGE 4096

static NOINLINE void write_pages(volatile char *map, uint64_t len, char value)
{
	for (uint64_t at = 0; at < len; at += PAGE)
		map[at] = value;
}

int main(int argc, char **argv)
{
	uint64_t len, children, pages;
	void *map;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 3)
		return 2;
	len = workload_number(argv[0], argv[1]);
	children = workload_number(argv[0], argv[2]);
	pages = len / PAGE;
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return 1;
	/* Fails where the kernel has no huge pages; where it has, a copy is not one page. */
	madvise(map, len, MADV_NOHUGEPAGE);
	write_pages(map, len, 1);
	for (uint64_t i = 0; i < children; i++) {
		int status;
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (pid == 0) {
			alarm(WORKLOAD_LIFE_S);
			write_pages(map, len, 2);
			_exit(0);
		}
		if (waitpid(pid, &status, 0) != pid || status)
			return 1;
	}
	workload_report("\"cleared_pages\": %llu, \"copied_pages\": %llu",
			(unsigned long long)pages, (unsigned long long)(pages * children));
	return 0;
}
