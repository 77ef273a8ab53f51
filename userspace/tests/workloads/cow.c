// SPDX-License-Identifier: GPL-2.0
/*
 * cow: writes to pages that are shared until they are written.
 *
 * usage: cow fork PAGES CHILDREN  children write their parent's block, one after the other; when
 *                                 the last is gone the parent writes it: its alone, nothing to copy
 *        cow file FILE w|rw       write every page of a private mapping of a file, or read it first
 *        cow merged PAGES SPARED  equal pages, written when KSM has made one of them all; as many that
 *                                 it was not offered are written beside
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "witness.h"

static NOINLINE char *make_block(uint64_t len)
{
	return aligned_alloc(PAGE, len); /* SITE block */
}

static NOINLINE void first_writes(volatile char *block, uint64_t len)
{
	for (uint64_t at = 0; at < len; at += PAGE)
		block[at] = 1; /* SITE first */
}

static NOINLINE void child_writes(volatile char *block, uint64_t len)
{
	for (uint64_t at = 0; at < len; at += PAGE)
		block[at] = 2; /* SITE child */
}

static NOINLINE void parent_writes(volatile char *block, uint64_t len)
{
	for (uint64_t at = 0; at < len; at += PAGE)
		block[at] = 3; /* SITE parent */
}

static NOINLINE void merged_writes(volatile uint64_t *block, uint64_t len)
{
	/* Each another value: or KSM would merge them again. */
	for (uint64_t at = 0; at < len; at += PAGE)
		block[at / sizeof(*block)] = at; /* SITE merged */
}

static NOINLINE uint64_t file_reads(const volatile char *map, uint64_t len)
{
	uint64_t sum = 0;

	for (uint64_t at = 0; at < len; at += PAGE)
		sum += (uint64_t)map[at]; /* SITE file_read */
	return sum;
}

static NOINLINE void file_writes(volatile char *map, uint64_t len)
{
	for (uint64_t at = 0; at < len; at += PAGE)
		map[at] = 4; /* SITE file_write */
}

static int run_fork(uint64_t pages, uint64_t children)
{
	uint64_t len = pages * PAGE, before;
	char *block = make_block(len);
	uint64_t *counted;
	cpu_set_t cpus;
	pid_t pid = -1;

	counted = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!block || counted == MAP_FAILED)
		return 1;
	/*
	 * On one processor: pages that another one has queued for its lists have a reference more,
	 * and are copied though they are the parent's alone.
	 */
	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		return 1;
	/* Fails where the kernel has no huge pages; where it has, a copy is not one page. */
	madvise(block, len, MADV_NOHUGEPAGE);
	first_writes(block, len);
	for (uint64_t i = 0; i < children; i++) {
		int status;

		pid = fork();
		if (pid < 0)
			return 1;
		if (pid == 0) {
			alarm(WORKLOAD_LIFE_S);
			before = witness_faults();
			child_writes(block, len);
			*counted += witness_faults() - before;
			_exit(0);
		}
		if (waitpid(pid, &status, 0) != pid || status)
			return 1;
	}
	before = witness_faults();
	parent_writes(block, len);
	workload_report("\"child_faults\": %llu, \"parent_faults\": %llu, \"last_child\": %d",
			(unsigned long long)*counted,
			(unsigned long long)(witness_faults() - before), pid);
	return 0;
}

/* In how many of our pages KSM has put one page for equal ones. */
static uint64_t merged_now(void)
{
	FILE *file = fopen("/proc/self/ksm_merging_pages", "re");
	unsigned long long pages = 0;

	if (!file || fscanf(file, "%llu", &pages) != 1)
		_exit(1);
	fclose(file);
	return pages;
}

static int run_merged(uint64_t pages, uint64_t spared)
{
	uint64_t len = (pages + spared) * PAGE, before;
	void *block = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED || madvise(block, len, MADV_NOHUGEPAGE))
		return 1;
	memset(block, 0x5a, len);
	if (madvise(block, pages * PAGE, MADV_MERGEABLE))
		return 1;
	while (merged_now() < pages)
		usleep(1000);
	before = witness_faults();
	merged_writes(block, len);
	workload_report("\"merged_faults\": %llu", (unsigned long long)(witness_faults() - before));
	return 0;
}

static int run_file(const char *path, int read_first)
{
	uint64_t reads = 0, writes, before, sum = 0, len;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *map;

	if (fd < 0 || fstat(fd, &st))
		return 1;
	len = (uint64_t)st.st_size;
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return 1;
	before = witness_faults();
	if (read_first)
		sum = file_reads(map, len);
	reads = witness_faults() - before;
	before = witness_faults();
	file_writes(map, len);
	writes = witness_faults() - before;
	workload_report("\"read_faults\": %llu, \"write_faults\": %llu, \"private_kb\": %llu, "
			"\"sum\": %llu",
			(unsigned long long)reads, (unsigned long long)writes,
			(unsigned long long)witness_smaps(map, len, "Private_Dirty"),
			(unsigned long long)sum);
	return 0;
}

int main(int argc, char **argv)
{
	alarm(WORKLOAD_LIFE_S);
	if (argc < 4)
		return 2;
	if (!strcmp(argv[1], "fork"))
		return run_fork(workload_number(argv[0], argv[2]),
				workload_number(argv[0], argv[3]));
	if (!strcmp(argv[1], "merged"))
		return run_merged(workload_number(argv[0], argv[2]),
				  workload_number(argv[0], argv[3]));
	if (!strcmp(argv[1], "file"))
		return run_file(argv[2], !strcmp(argv[3], "rw"));
	return 2;
}
