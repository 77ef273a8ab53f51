// SPDX-License-Identifier: GPL-2.0
/*
 * mappings: a process with as many mappings of files as it may have, under paths as long as they come.
 *
 * usage: mappings DIRECTORY FILES CALLS
 * Makes FILES copies of its own file, deep below DIRECTORY, and maps a page of each in turn, as
 * code, 65,400 times or until the kernel allows no more. When a line comes CALLS callocs and frees of 1 MiB follow,
 * and it waits again.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "workload.h"

#define PAGE 4096UL
#define DEPTH 15
#define NAME 250
#define FILES_MAX 8192
/* What vm.max_map_count allows by default, less what else is mapped. */
#define MAPPED_MAX 65400
/* Left for what memtoll and libc map: the stack of a signal, an arena, uprobes' own page. */
#define SPARE 64

static NOINLINE void one_round(size_t size)
{
	void *block = calloc(1, size); /* SITE calloc */

	workload_sink = block;
	free(block);
}

/* Each directory entered by itself: the path as a whole would be too long for one call. */
static bool go_deep(const char *directory)
{
	char name[NAME + 1];

	memset(name, 'd', NAME);
	name[NAME] = '\0';
	if (chdir(directory))
		return false;
	for (int i = 0; i < DEPTH; i++)
		if ((mkdir(name, 0755) && errno != EEXIST) || chdir(name))
			return false;
	return true;
}

static int copy_self(unsigned int number)
{
	char name[32], buffer[1 << 16];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to;
	ssize_t got;

	snprintf(name, sizeof(name), "library%u.so", number);
	to = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	while (from >= 0 && to >= 0 && (got = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, (size_t)got) != got)
			break;
	close(from);
	return to;
}

int main(int argc, char **argv)
{
	uint64_t files, calls, mapped = 0;
	static int fds[FILES_MAX];
	void *spare[SPARE];

	alarm(WORKLOAD_LIFE_S);
	if (argc != 4)
		return 2;
	files = workload_number(argv[0], argv[2]);
	calls = workload_number(argv[0], argv[3]);
	if (!files || files > FILES_MAX || !go_deep(argv[1]))
		return 1;
	for (uint64_t i = 0; i < files; i++) {
		fds[i] = copy_self((unsigned int)i);
		if (fds[i] < 0)
			return 1;
	}
	/* Of two neighbours alike the kernel makes one mapping: no two are. */
	for (int i = 0; i < SPARE; i++)
		spare[i] = mmap(NULL, PAGE, i % 2 ? PROT_READ : PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	while (mapped < MAPPED_MAX && mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE,
					   fds[mapped % files], 0) != MAP_FAILED)
		mapped++;
	for (int i = 0; i < SPARE; i++)
		munmap(spare[i], PAGE);
	workload_wait();
	for (uint64_t i = 0; i < calls; i++)
		one_round(1 << 20);
	workload_report("\"calls\": %llu, \"mapped\": %llu", (unsigned long long)calls,
			(unsigned long long)mapped);
	workload_wait();
	return 0;
}
