// SPDX-License-Identifier: GPL-2.0
/*
 * remedies: what the advice is about that no setting mends, and the same as the advice would have it.
 *
 * usage: remedies SHAPE ROUNDS [heeded]
 *   own-storm         a mapping of its own, used whole and unmapped | kept
 *   stack-storm       a thread for each round, which uses its stack | one for all
 *   let-go            a file that is in memory, mapped, taken out by MADV_DONTNEED | left
 *   file-fault        a file that is in memory, mapped and read in each round | mapped once
 *   shared-map        the same of shared memory, which is written to
 *   cow               memory is filled, and then each round forks and writes to it | forks before
 *   never-used        large blocks of calloc that are not used | small ones
 *   map-churn         each round changes the protection of memory page by page | at once
 *   memset-app        all of a buffer is cleared, and a page of it used | that page is cleared
 *   app-double-clear  malloc and memset of large blocks, of which a page is used | calloc
 *   calloc-memset     blocks from the heap that calloc clears | one that is kept, and a page cleared
 *   zeros-read        /dev/zero is read into a buffer | a page of it is cleared
 *   small-steps       a block grows by realloc in small steps | to the double
 *   alloc-cpu         lists of small blocks are made and freed | made once
 * Prints its processor time.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "witness.h"

#define SMALL 40000

static int heeded;
static uint64_t rounds;

static NOINLINE void use(volatile char *block, uint64_t size, char value)
{
	for (uint64_t at = 0; at < size; at += PAGE)
		block[at] = value; /* SITE use */
}

static NOINLINE void look(volatile char *block, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += PAGE)
		(void)block[at];
}

static void *checked(void *block)
{
	if (!block || block == MAP_FAILED)
		_exit(1);
	return block;
}

static NOINLINE void clear(char *block, uint64_t size)
{
	memset(block, 0, size);
	workload_sink = block;
}

static void own_storm(uint64_t round)
{
	static char *mapping;
	uint64_t size = 512 * PAGE;

	if (!round || !heeded)
		mapping = checked(mmap(NULL, size, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	use(mapping, size, 1);
	if (!heeded)
		munmap(mapping, size);
}

static NOINLINE void use_stack(void)
{
	char local[256 * PAGE];

	use(local, sizeof(local), 1);
}

static void *run_stack(void *times)
{
	for (uint64_t i = *(uint64_t *)times; i--;)
		use_stack();
	return NULL;
}

static void stack_storm(uint64_t round)
{
	uint64_t times = heeded ? rounds : 1;
	pthread_t thread;

	if (heeded && round)
		return;
	if (pthread_create(&thread, NULL, run_stack, &times) || pthread_join(thread, NULL))
		_exit(1);
}

/* A file, or shared memory: what it holds is in memory. */
static int filled(const char *dir, uint64_t size)
{
	static char page[PAGE];
	char path[64];
	int fd;

	if (!dir)
		fd = memfd_create("remedies", MFD_CLOEXEC);
	else {
		snprintf(path, sizeof(path), "%s/remedies.XXXXXX", dir);
		fd = mkstemp(path);
		unlink(path);
	}
	for (uint64_t at = 0; at < size; at += PAGE)
		if (pwrite(fd, page, PAGE, (off_t)at) != (ssize_t)PAGE)
			_exit(1);
	return fd;
}

static void mapped_file(uint64_t round, const char *dir, int prot, int keep)
{
	uint64_t size = 2048 * PAGE;
	static char *mapping;
	static int fd;

	if (!round)
		fd = filled(dir, size);
	if (!round || !(heeded || keep))
		mapping = checked(mmap(NULL, size, prot, MAP_SHARED, fd, 0));
	if (prot & PROT_WRITE)
		use(mapping, size, 1);
	else
		look(mapping, size);
	if (heeded)
		return;
	if (keep)
		madvise(mapping, size, MADV_DONTNEED);
	else
		munmap(mapping, size);
}

static void cow(uint64_t round)
{
	uint64_t size = 2048 * PAGE;
	static char *memory;
	pid_t child;

	if (!round) {
		memory = checked(mmap(NULL, size, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		if (!heeded)
			use(memory, size, 1);
	}
	if (!round || !heeded) {
		int ends[2];

		if (pipe(ends))
			_exit(1);
		child = fork();
		if (!child) {
			close(ends[1]);
			_exit(read(ends[0], ends, 1) != 0);
		}
		close(ends[0]);
		use(memory, size, 2);
		close(ends[1]);
		waitpid(child, NULL, 0);
	} else {
		use(memory, size, 2);
	}
}

static void never_used(void)
{
	free(workload_sink = calloc(1, heeded ? 64 : 40UL << 20));
}

static void map_churn(uint64_t round)
{
	uint64_t size = 512 * PAGE, step = heeded ? size : PAGE;
	static char *memory;

	if (!round) {
		memory = checked(mmap(NULL, size, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		use(memory, size, 1);
	}
	for (uint64_t at = 0; at < size; at += step)
		mprotect(memory + at, step, round % 2 ? PROT_READ | PROT_WRITE : PROT_READ);
}

static void memset_app(uint64_t round)
{
	static char *block;

	if (!round)
		block = checked(malloc(4UL << 20));
	clear(block, heeded ? PAGE : 4UL << 20);
	use(block, PAGE, 1);
}

static void app_double_clear(void)
{
	uint64_t size = 40UL << 20;
	char *block = checked(heeded ? calloc(1, size) : malloc(size));

	if (!heeded)
		clear(block, size);
	use(block, PAGE, 1);
	free(block);
}

static void calloc_memset(uint64_t round)
{
	uint64_t size = 100003;
	static char *block;

	if (!round || !heeded)
		block = checked(calloc(1, size));
	else
		clear(block, PAGE);
	use(block, PAGE, 1);
	if (!heeded)
		free(block);
}

static void zeros_read(uint64_t round)
{
	uint64_t size = 2UL << 20;
	static char *block;
	static int fd;

	if (!round) {
		fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
		block = checked(malloc(size));
		use(block, size, 1);
	}
	if (heeded)
		clear(block, PAGE);
	else if (read(fd, block, size) != (ssize_t)size)
		_exit(1);
}

/* Small blocks beside, so that the top of the heap is another's; a larger one was freed before. */
static void small_steps(uint64_t round)
{
	uint64_t most = 2000003, step = 4099, size;
	char *block = NULL, *beside[2048];
	int count = 0;

	if (!round)
		free(workload_sink = malloc(4UL << 20));
	for (size = step; size < most; size = heeded ? 2 * size : size + step) {
		block = checked(realloc(block, size));
		block[size - 1] = 1;
		beside[count++] = malloc(40000);
	}
	while (count)
		free(beside[--count]);
	free(block);
}

static void alloc_cpu(uint64_t round)
{
	static char *list[SMALL];

	for (int i = 0; i < SMALL; i++) {
		if (!round || !heeded)
			list[i] = checked(malloc(40 + i % 900));
		list[i][0] = 1;
	}
	if (!round)
		workload_sink = malloc(40); /* above them: the heap is not trimmed */
	for (int i = 0; i < SMALL && !heeded; i++)
		free(list[i * 7 % SMALL]);
}

static int one_round(const char *shape, uint64_t round)
{
	if (!strcmp(shape, "own-storm"))
		own_storm(round);
	else if (!strcmp(shape, "stack-storm"))
		stack_storm(round);
	else if (!strcmp(shape, "let-go"))
		mapped_file(round, ".", PROT_READ, 1);
	else if (!strcmp(shape, "file-fault"))
		mapped_file(round, ".", PROT_READ, 0);
	else if (!strcmp(shape, "shared-map"))
		mapped_file(round, NULL, PROT_READ | PROT_WRITE, 0);
	else if (!strcmp(shape, "cow"))
		cow(round);
	else if (!strcmp(shape, "never-used"))
		never_used();
	else if (!strcmp(shape, "map-churn"))
		map_churn(round);
	else if (!strcmp(shape, "memset-app"))
		memset_app(round);
	else if (!strcmp(shape, "app-double-clear"))
		app_double_clear();
	else if (!strcmp(shape, "calloc-memset"))
		calloc_memset(round);
	else if (!strcmp(shape, "zeros-read"))
		zeros_read(round);
	else if (!strcmp(shape, "small-steps"))
		small_steps(round);
	else if (!strcmp(shape, "alloc-cpu"))
		alloc_cpu(round);
	else
		return 0;
	return 1;
}

int main(int argc, char **argv)
{
	alarm(WORKLOAD_LIFE_S);
	if (argc < 3)
		return 2;
	rounds = workload_number(argv[0], argv[2]);
	heeded = argc > 3;
	for (uint64_t round = 0; round < rounds; round++)
		if (!one_round(argv[1], round))
			return 2;
	workload_report("\"rounds\": %llu, \"faults\": %llu", (unsigned long long)rounds,
			(unsigned long long)witness_faults());
	return 0;
}
