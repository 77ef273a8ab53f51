// SPDX-License-Identifier: GPL-2.0
/*
 * shared: pages of shared memory and of files, touched in two phases by two mappings.
 *
 * usage: shared memfd|sysv|anonymous PAGES   one mapping writes, then another reads: what is there
 *                                            already is mapped around a fault
 *        shared file FILE SKIP               a file in the page cache is read, from page SKIP on
 * Of MAP_SHARED|MAP_ANONYMOUS the other mapping is a child's.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "witness.h"

/* More than any boundary that matters to page tables and page cache. */
#define SPACE (4UL << 20)

struct counts {
	uint64_t start;
	uint64_t faults;
	uint64_t present;
};

static NOINLINE void write_pages(volatile char *map, uint64_t len)
{
	for (uint64_t at = 0; at < len; at += PAGE)
		map[at] = 1; /* SITE write */
}

static NOINLINE uint64_t read_pages(const volatile char *map, uint64_t len)
{
	uint64_t sum = 0;

	for (uint64_t at = 0; at < len; at += PAGE)
		sum += (uint64_t)map[at]; /* SITE read */
	return sum;
}

/* Faults and pages mapped while a mapping was read or written. */
static struct counts touch(void *map, uint64_t len, int write)
{
	struct counts counts;
	uint64_t sum = 0;

	counts.start = (uint64_t)map;
	counts.faults = witness_faults();
	if (write)
		write_pages(map, len);
	else
		sum = read_pages(map, len);
	counts.faults = witness_faults() - counts.faults;
	workload_sink = (void *)sum;
	counts.present = witness_present(map, len);
	return counts;
}

static int tell(const struct counts *wrote, const struct counts *read, uint64_t inode)
{
	workload_report("\"write_faults\": %llu, \"write_pages\": %llu, \"read_faults\": %llu, "
			"\"read_pages\": %llu, \"read_start\": %llu, \"inode\": %llu",
			(unsigned long long)wrote->faults, (unsigned long long)wrote->present,
			(unsigned long long)read->faults, (unsigned long long)read->present,
			(unsigned long long)read->start, (unsigned long long)inode);
	return 0;
}

static int run_memfd(uint64_t len)
{
	struct counts wrote, read;
	int fd = memfd_create("memtoll-ring", MFD_CLOEXEC);
	void *map;

	if (fd < 0 || ftruncate(fd, (off_t)len))
		return 1;
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return 1;
	wrote = touch(map, len, 1);
	munmap(map, len);
	map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return 1;
	read = touch(map, len, 0);
	return tell(&wrote, &read, 0);
}

static int run_sysv(uint64_t len)
{
	int id = shmget(IPC_PRIVATE, len, IPC_CREAT | 0600);
	struct counts wrote, read;
	void *maps[2];
	int i;

	if (id < 0)
		return 1;
	for (i = 0; i < 2; i++)
		maps[i] = shmat(id, NULL, i ? SHM_RDONLY : 0); /* SITE sysv */
	/* Gone with its last user, whatever happens to this one. */
	shmctl(id, IPC_RMID, NULL);
	if (maps[0] == (void *)-1 || maps[1] == (void *)-1)
		return 1;
	wrote = touch(maps[0], len, 1);
	read = touch(maps[1], len, 0);
	/* Two areas, which go at once; the other one stays. */
	if (mprotect(maps[1], PAGE, PROT_NONE) || shmdt(maps[1])) /* SITE detach */
		return 1;
	return tell(&wrote, &read, (uint64_t)id);
}

static NOINLINE void *map_shared(uint64_t len)
{
	const int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_ANONYMOUS;

	return mmap(NULL, len, protection, flags, -1, 0); /* SITE anonymous */
}

static int run_anonymous(uint64_t len)
{
	void *map = map_shared(len);
	struct counts wrote, *read;
	pid_t pid;

	read = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED || read == MAP_FAILED)
		return 1;
	wrote = touch(map, len, 1);
	/* Page tables of shared memory are not copied: the child maps anew. */
	pid = fork();
	if (pid < 0)
		return 1;
	if (pid == 0) {
		alarm(WORKLOAD_LIFE_S);
		*read = touch(map, len, 0);
		_exit(0);
	}
	if (waitpid(pid, NULL, 0) != pid)
		return 1;
	return tell(&wrote, read, 0);
}

static int run_file(const char *path, uint64_t skip)
{
	struct counts none = { 0 }, read;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint64_t len;
	char *space;
	void *map;

	if (fd < 0 || fstat(fd, &st))
		return 1;
	while (pread(fd, witness_text, sizeof(witness_text), (off_t)none.present) > 0)
		none.present += sizeof(witness_text);
	none.present = 0;
	len = (uint64_t)st.st_size - skip * PAGE;
	/* At an address of our choice: not on a boundary of what is mapped around a fault. */
	space = mmap(NULL, len + 2 * SPACE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (space == MAP_FAILED)
		return 1;
	space = (char *)(((uint64_t)space + SPACE) & ~(SPACE - 1)) + skip * PAGE;
	map = mmap(space, len, PROT_READ, MAP_SHARED | MAP_FIXED, fd, (off_t)(skip * PAGE));
	if (map == MAP_FAILED)
		return 1;
	read = touch(map, len, 0);
	return tell(&none, &read, (uint64_t)st.st_ino);
}

int main(int argc, char **argv)
{
	alarm(WORKLOAD_LIFE_S);
	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "memfd"))
		return run_memfd(workload_number(argv[0], argv[2]) * PAGE);
	if (!strcmp(argv[1], "sysv"))
		return run_sysv(workload_number(argv[0], argv[2]) * PAGE);
	if (!strcmp(argv[1], "anonymous"))
		return run_anonymous(workload_number(argv[0], argv[2]) * PAGE);
	if (!strcmp(argv[1], "file") && argc > 3)
		return run_file(argv[2], workload_number(argv[0], argv[3]));
	return 2;
}
