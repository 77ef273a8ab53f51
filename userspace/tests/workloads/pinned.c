// SPDX-License-Identifier: GPL-2.0
/*
 * pinned: pages that a system call faults in, and pages that are freed behind it.
 *
 * usage: pinned FILE (HOW ROUNDS PAGES)...
 *        lock     map, mlock, unmap
 *        onfault  the same, mlock2(MLOCK_ONFAULT); a tenth is used
 *        shared   map a new memfd with MAP_POPULATE
 *        again    map the same memfd with MAP_POPULATE, again and again
 *        madvise  MADV_POPULATE_WRITE
 *        direct   O_DIRECT read of FILE into a fresh buffer
 *        ring     register a fresh buffer with io_uring
 *        store    fallocate a memfd and close it
 *        future   mlockall(MCL_FUTURE), and a thread with such a stack each: comes last
 */
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "witness.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static int file = -1, ring = -1;

static NOINLINE char *fresh(uint64_t len)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *map = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, -1, 0); /* SITE fresh */

	if (map == MAP_FAILED)
		_exit(101);
	madvise(map, len, MADV_NOHUGEPAGE);
	return map;
}

static NOINLINE int lock(char *map, uint64_t len)
{
	int err = mlock(map, len); /* SITE lock */

	return err;
}

static NOINLINE int populate(char *map, uint64_t len)
{
	int err = madvise(map, len, MADV_POPULATE_WRITE); /* SITE madvise */

	return err;
}

static NOINLINE int read_direct(char *map, uint64_t len)
{
	ssize_t got = pread(file, map, len, 0); /* SITE direct */

	return got != (ssize_t)len;
}

static NOINLINE int pin(char *map, uint64_t len)
{
	struct iovec buffer = { map, len };
	const int how = IORING_REGISTER_BUFFERS;
	int err = syscall(SYS_io_uring_register, ring, how, &buffer, 1); /* SITE ring */

	return err || syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0);
}

static NOINLINE char *map_shared(int fd, uint64_t len)
{
	const int flags = MAP_SHARED | MAP_POPULATE;
	char *map = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0); /* SITE shared */

	return map;
}

static int new_memfd(uint64_t len)
{
	int fd = memfd_create("pinned", MFD_CLOEXEC);

	return fd < 0 || ftruncate(fd, (off_t)len) ? -1 : fd;
}

static int use_shared(int fd, uint64_t len)
{
	char *map = map_shared(fd, len);

	return map == MAP_FAILED || munmap(map, len);
}

static void *work(void *nothing)
{
	return nothing;
}

static NOINLINE int start(uint64_t len)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	err = pthread_attr_setstacksize(&attr, len);
	err = err ? err : pthread_create(&thread, &attr, work, NULL); /* SITE thread */
	return err ? err : pthread_join(thread, NULL);
}

static NOINLINE int store(uint64_t len)
{
	int fd = memfd_create("pinned", MFD_CLOEXEC);
	int err = fallocate(fd, 0, 0, (off_t)len); /* SITE store */

	return err || close(fd);
}

/* A buffer that is mapped, given to one system call, and unmapped. */
static int use_fresh(const char *how, uint64_t len)
{
	char *map = fresh(len);
	int err = 1;

	if (!strcmp(how, "lock")) {
		err = lock(map, len);
	} else if (!strcmp(how, "onfault")) {
		err = mlock2(map, len, 1 /* MLOCK_ONFAULT */);
		memset(map, 1, len / PAGE / 10 * PAGE);
	} else if (!strcmp(how, "madvise")) {
		err = populate(map, len);
	} else if (!strcmp(how, "direct")) {
		err = read_direct(map, len);
	} else if (!strcmp(how, "ring")) {
		err = pin(map, len);
	}
	return err || munmap(map, len);
}

static int once(const char *how, uint64_t len)
{
	int fd, err;

	if (!strcmp(how, "future"))
		return start(len);
	if (!strcmp(how, "store"))
		return store(len);
	if (!strcmp(how, "again"))
		return use_shared(file, len);
	if (strcmp(how, "shared"))
		return use_fresh(how, len);
	fd = new_memfd(len);
	err = use_shared(fd, len);
	return err || close(fd);
}

/* All that is made once is made before the faults are counted. */
static int prepare(const char *how, const char *path, uint64_t len)
{
	struct io_uring_params params = { 0 };

	if (!strcmp(how, "direct"))
		file = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	else if (!strcmp(how, "again"))
		file = new_memfd(len);
	else if (!strcmp(how, "ring"))
		ring = syscall(SYS_io_uring_setup, 4, &params);
	else if (!strcmp(how, "future"))
		return mlockall(MCL_FUTURE);
	return strcmp(how, "again") ? 0 : once(how, len);
}

int main(int argc, char **argv)
{
	int at;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 5)
		return 2;
	for (at = 2; at + 2 < argc; at += 3) {
		uint64_t rounds = workload_number(argv[0], argv[at + 1]);
		uint64_t len = workload_number(argv[0], argv[at + 2]) * PAGE;
		int failed = prepare(argv[at], argv[1], len);
		uint64_t faults = witness_faults();

		for (uint64_t i = 0; i < rounds && !failed; i++)
			failed = once(argv[at], len);
		faults = witness_faults() - faults;
		munlockall();
		if (failed)
			return 1;
		workload_report("\"how\": \"%s\", \"faults\": %llu", argv[at],
				(unsigned long long)faults);
	}
	return 0;
}
