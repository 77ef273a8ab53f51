// SPDX-License-Identifier: GPL-2.0
/*
 * file_map: reads every page of a file through a mapping (casebook, entry 8).
 *
 * usage: file_map FILE cold|warm PASSES
 *   cold  the page cache is emptied of the file before each pass and read-ahead is off: one major
 *         fault a page, and no swap
 *   warm  the file is read first: minor faults only
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "workload.h"

#define PAGE 4096

static NOINLINE uint64_t read_pages(const volatile unsigned char *map, uint64_t len)
{
	uint64_t sum = 0;

	for (uint64_t at = 0; at < len; at += PAGE)
		sum += map[at]; /* SITE touch */
	return sum;
}

static int one_pass(int fd, uint64_t len, int cold, uint64_t *sum)
{
	void *map;

	if (cold && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		return 1;
	map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return 1;
	if (cold && madvise(map, len, MADV_RANDOM))
		return 1;
	*sum += read_pages(map, len);
	return munmap(map, len);
}

int main(int argc, char **argv)
{
	uint64_t passes, sum = 0;
	char bytes[PAGE];
	struct stat st;
	int fd, cold;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 4)
		return 2;
	cold = !strcmp(argv[2], "cold");
	passes = workload_number(argv[0], argv[3]);
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return 1;
	if (!cold) {
		while (read(fd, bytes, sizeof(bytes)) > 0)
			;
	}
	for (uint64_t i = 0; i < passes; i++) {
		if (one_pass(fd, (uint64_t)st.st_size, cold, &sum))
			return 1;
	}
	close(fd);
	workload_report("\"pages\": %llu, \"sum\": %llu",
			(unsigned long long)((uint64_t)st.st_size / PAGE * passes),
			(unsigned long long)sum);
	return 0;
}
