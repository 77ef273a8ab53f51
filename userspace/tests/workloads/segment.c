// SPDX-License-Identifier: GPL-2.0
/*
 * segment: a segment of shared memory that is written once, and then gone over again and again.
 *
 * usage: segment memfd|sysv|anonymous|tmpfs PAGES PASSES order|chance PROCESSES [wait]
 *
 * PROCESSES 0: by the program itself; else by so many children, all at once. wait: for a line on
 * standard input before that.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>

#include "witness.h"

static NOINLINE void *map_file(int fd, uint64_t len)
{
	if (fd < 0 || ftruncate(fd, (off_t)len))
		return MAP_FAILED;
	return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0); /* SITE map */
}

static void *attach_sysv(uint64_t len)
{
	int id = shmget(0x20d1f4, len, IPC_CREAT | IPC_EXCL | 0600);
	void *map = id < 0 ? MAP_FAILED : shmat(id, NULL, 0);

	/* Gone with its last user, whatever happens to this one. */
	shmctl(id, IPC_RMID, NULL);
	return map;
}

static void *map_tmpfs(uint64_t len)
{
	char path[] = "/dev/shm/memtoll-segment-XXXXXX";
	void *map = map_file(mkstemp(path), len);

	unlink(path);
	return map;
}

static void *make(const char *kind, uint64_t len)
{
	if (!strcmp(kind, "memfd"))
		return map_file(memfd_create("memtoll-segment", MFD_CLOEXEC), len);
	if (!strcmp(kind, "sysv"))
		return attach_sysv(len);
	if (!strcmp(kind, "tmpfs"))
		return map_tmpfs(len);
	return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* Every page differs from every other, and is never all zeros. */
static NOINLINE void fill(volatile uint64_t *map, uint64_t pages)
{
	for (uint64_t page = 0; page < pages; page++)
		map[page * (PAGE / 8)] = page + 1; /* SITE fill */
}

static NOINLINE void go_over(volatile uint64_t *map, uint64_t pages, uint64_t passes, int chance)
{
	for (uint64_t pass = 0; pass < passes; pass++)
		for (uint64_t i = 0; i < pages; i++) {
			uint64_t page = chance ? (i * 7919 + pass * 1009) % pages : i;

			map[page * (PAGE / 8)] += 1; /* SITE use */
		}
}

int main(int argc, char **argv)
{
	uint64_t pages, passes, processes, i;
	struct rusage usage;
	int chance;
	void *map;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 6)
		return 2;
	pages = workload_number(argv[0], argv[2]);
	passes = workload_number(argv[0], argv[3]);
	chance = !strcmp(argv[4], "chance");
	processes = workload_number(argv[0], argv[5]);
	map = make(argv[1], pages * PAGE);
	if (map == MAP_FAILED)
		return 1;
	fill(map, pages);
	if (argc > 6)
		workload_wait();
	if (!processes)
		go_over(map, pages, passes, chance);
	for (i = 0; i < processes; i++)
		if (!fork()) {
			alarm(WORKLOAD_LIFE_S);
			go_over(map, pages, passes, chance);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	getrusage(RUSAGE_CHILDREN, &usage);
	workload_report("\"children_minflt\": %ld, \"children_majflt\": %ld", usage.ru_minflt,
			usage.ru_majflt);
	return 0;
}
