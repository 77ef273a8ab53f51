// SPDX-License-Identifier: GPL-2.0
/*
 * giveaway: uses memory again that it has asked the kernel to take.
 *
 * usage: giveaway PAGES PASSES pageout|cold|free|shared
 *   pageout  anonymous memory, MADV_PAGEOUT after each pass
 *   shared   a memfd, the same
 *   cold     MADV_COLD after each pass, then as much again is used of other memory
 *   free     MADV_FREE, the same
 * Prints how many pages were used, and how many bytes it asked the kernel to take.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "workload.h"

#define PAGE 4096ULL

static uint64_t used, given;

static NOINLINE void use(char *memory, uint64_t pages)
{
	uint64_t i;

	for (i = 0; i < pages; i++)
		memory[i * PAGE]++; /* SITE use */
	used += pages;
}

static NOINLINE void give(char *memory, uint64_t len, int advice)
{
	if (madvise(memory, len, advice)) /* SITE give */
		_exit(4);
	given += len;
}

static char *map(uint64_t len, int shared)
{
	int fd = shared ? memfd_create("giveaway", MFD_CLOEXEC) : -1;
	char *memory;

	if (shared && (fd < 0 || ftruncate(fd, (off_t)len)))
		_exit(3);
	memory = mmap(NULL, len, PROT_READ | PROT_WRITE,
		      shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	if (memory == MAP_FAILED)
		_exit(3);
	madvise(memory, len, MADV_NOHUGEPAGE);
	return memory;
}

int main(int argc, char **argv)
{
	uint64_t pages, passes, len;
	char *memory, *other = NULL;
	int advice;

	if (argc != 4)
		return 2;
	pages = workload_number("PAGES", argv[1]);
	passes = workload_number("PASSES", argv[2]);
	len = pages * PAGE;
	advice = !strcmp(argv[3], "cold") ? MADV_COLD :
		 !strcmp(argv[3], "free") ? MADV_FREE :
					    MADV_PAGEOUT;
	memory = map(len, !strcmp(argv[3], "shared"));
	if (advice != MADV_PAGEOUT)
		other = map(len, 0);
	while (passes--) {
		use(memory, pages);
		give(memory, len, advice);
		if (other)
			use(other, pages);
	}
	workload_report("\"used\": %llu, \"given\": %llu", (unsigned long long)used,
			(unsigned long long)given);
	return 0;
}
