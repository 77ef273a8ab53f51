// SPDX-License-Identifier: GPL-2.0
/*
 * in_kernel: pages that a system call touches for the program.
 *
 * usage: in_kernel read FILE         read(2) a file into a fresh block
 *        in_kernel write PAGES       write(2) an untouched block into a pipe
 *        in_kernel other PAGES       process_vm_writev(2) into a fresh block of its own
 *        in_kernel populate PAGES    mmap(2) with MAP_POPULATE
 *        in_kernel tables PAGES      307 ms of CPU time each in fork(2), in mprotect(2) and in read(2)
 *                                    of /dev/zero, over memory that is there
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "witness.h"

static NOINLINE char *make_block(uint64_t len)
{
	char *block = aligned_alloc(PAGE, len); /* SITE block */

	/* Fails where the kernel has no huge pages. */
	madvise(block, len, MADV_NOHUGEPAGE);
	return block;
}

static NOINLINE int64_t read_file(int fd, char *block, uint64_t len)
{
	return read(fd, block, len); /* SITE read */
}

static NOINLINE int64_t write_pipe(int fd, const char *block, uint64_t len)
{
	int64_t written = write(fd, block, len); /* SITE write */

	return written;
}

static NOINLINE int64_t write_other(char *block, uint64_t len)
{
	struct iovec from = { .iov_base = witness_text, .iov_len = PAGE };
	struct iovec to = { .iov_base = block, .iov_len = PAGE };
	int64_t written = 0;

	for (uint64_t at = 0; at < len; at += PAGE) {
		to.iov_base = block + at;
		written += process_vm_writev(getpid(), &from, 1, &to, 1, 0); /* SITE other */
	}
	return written;
}

static NOINLINE char *map_populated(uint64_t len)
{
	char *map = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0); /* SITE populate */

	return map;
}

static int run_read(const char *path, uint64_t *faults, uint64_t *pages)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	int64_t got;
	char *block;

	if (fd < 0 || fstat(fd, &st))
		return 1;
	*pages = (uint64_t)st.st_size / PAGE;
	block = make_block(*pages * PAGE);
	*faults = witness_faults();
	got = read_file(fd, block, *pages * PAGE);
	*faults = witness_faults() - *faults;
	return got != (int64_t)(*pages * PAGE);
}

/* As many pages at a time as a pipe holds. */
static int run_write(uint64_t pages, uint64_t *faults)
{
	char *block = make_block(pages * PAGE);
	int ends[2];

	if (pipe(ends))
		return 1;
	for (uint64_t at = 0; at < pages; at++) {
		uint64_t before = witness_faults();

		if (write_pipe(ends[1], block + at * PAGE, PAGE) != (int64_t)PAGE)
			return 1;
		*faults += witness_faults() - before;
		if (read(ends[0], witness_text, PAGE) != (ssize_t)PAGE)
			return 1;
	}
	return 0;
}

static NOINLINE void protect(char *block, uint64_t len)
{
	mprotect(block, len, PROT_READ); /* SITE protect */
	mprotect(block, len, PROT_READ | PROT_WRITE);
}

static NOINLINE void read_zeros(int fd, char *block, uint64_t len)
{
	if (read(fd, block, len) != (ssize_t)len) /* SITE zeros */
		_exit(1);
}

static NOINLINE void make_child(void)
{
	pid_t child = fork(); /* SITE fork */

	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
}

static double cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Nothing is cleared or copied for pages that are there, but for the block itself. */
static int run_tables(uint64_t pages, uint64_t *faults)
{
	int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC), part;
	char *block = make_block(pages * PAGE);
	double until;

	if (zeros < 0)
		return 1;
	memset(block, 1, pages * PAGE);
	*faults = witness_faults();
	for (part = 0; part < 3; part++) {
		until = cpu_s() + 0.307;
		while (cpu_s() < until) {
			if (part == 0)
				make_child();
			else if (part == 1)
				protect(block, pages * PAGE);
			else
				read_zeros(zeros, block, pages * PAGE);
		}
	}
	*faults = witness_faults() - *faults;
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t pages = 0, faults = 0;
	int failed = 2;
	char *block;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 3)
		return 2;
	if (strcmp(argv[1], "read"))
		pages = workload_number(argv[0], argv[2]);
	if (!strcmp(argv[1], "read")) {
		failed = run_read(argv[2], &faults, &pages);
	} else if (!strcmp(argv[1], "write")) {
		failed = run_write(pages, &faults);
	} else if (!strcmp(argv[1], "other")) {
		witness_text[0] = 1;
		block = make_block(pages * PAGE);
		faults = witness_faults();
		failed = write_other(block, pages * PAGE) != (int64_t)(pages * PAGE);
		faults = witness_faults() - faults;
	} else if (!strcmp(argv[1], "tables")) {
		failed = run_tables(pages, &faults);
	} else if (!strcmp(argv[1], "populate")) {
		faults = witness_faults();
		block = map_populated(pages * PAGE);
		faults = witness_faults() - faults;
		failed = witness_present(block, pages * PAGE) != pages;
	}
	workload_report("\"pages\": %llu, \"faults\": %llu", (unsigned long long)pages,
			(unsigned long long)faults);
	return failed;
}
