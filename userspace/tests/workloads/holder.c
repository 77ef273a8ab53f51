// SPDX-License-Identifier: GPL-2.0
/*
 * holder.c: SHAPE [MIB [walled | heapless]]: memory that is held in one of several ways, at rest.
 * Says what mallinfo2(3) says, an object of JSON, at the start and for every line "info" on stdin;
 * for "trim" what is resident before and after malloc_trim(0); for "leak" 83 more blocks stay, and
 * as many come and go; for a shape that is taken up, too; for "work MS" how many of the blocks of
 * "full" it has replaced in so many milliseconds; for "nodes COUNT" a list of so many has come and
 * gone; for "turn MS" it takes and frees blocks again and again for so long, and says how many
 * faults that took.
 * walled: of a heap that cannot grow any more (wall.h); heapless: of one that never could. Its own
 * output needs no memory of malloc's.
 */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "wall.h"

#ifndef INFO
#define INFO mallinfo2 /* since glibc 2.33 */
#endif
#define MIB (1UL << 20)
#define THREADS 8
#define SMALL 64
#define BLOCKS_MAX (1UL << 20)

static void *blocks[BLOCKS_MAX];
static pthread_barrier_t filled;
static size_t mib = 64;
static atomic_bool busy;

static void *touched(size_t size)
{
	char *block = malloc(size);

	if (!block)
		abort();
	memset(block, 1, size);
	return block;
}

static const struct kind {
	const char *name;
} staying = { "staying" };

/* What lives on begins with a pointer to what it is, as objects of C++ do. */
static void stay(size_t size)
{
	const struct kind **block = touched(size); /* SITE stay */

	*block = &staying;
}

/* A small live chunk on every page, what is between is free. */
static void hold_pages(void)
{
	size_t count = mib * MIB / 4096, i;

	for (i = 0; i < count; i++) {
		blocks[i] = touched(4096 - 16 - 32 - SMALL);
		stay(SMALL + 16);
	}
	for (i = 0; i < count; i++)
		free(blocks[i]);
}

/* All free but the last chunk, which keeps the program break where it is. */
static void hold_top(void)
{
	size_t count = mib * 16, i;

	for (i = 0; i < count; i++)
		blocks[i] = touched(MIB / 16 - 16);
	stay(200);
	for (i = 0; i < count; i++)
		free(blocks[i]);
}

static void hold_full(void)
{
	size_t i;

	for (i = 0; i < mib * 1024; i++)
		blocks[i] = touched(1024 - 16);
}

static void *fill_arena(void *unused)
{
	size_t count = mib * MIB / THREADS / 8192, i;
	void **own = calloc(count, sizeof(*own));

	for (i = 0; i < count; i++)
		own[i] = touched(8192 - 16);
	for (i = 0; i < count; i++)
		free(own[i]);
	free(own);
	pthread_barrier_wait(&filled);
	pause();
	return unused;
}

/* Eight threads, each with an arena whose top it has freed again. */
static void hold_arenas(void)
{
	pthread_t thread;
	size_t i;

	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_ARENA_MAX, THREADS + 1);
	pthread_barrier_init(&filled, NULL, THREADS + 1);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, fill_arena, NULL))
			abort();
	pthread_barrier_wait(&filled);
}

/* Sizes of tcache's bins and of fast ones: seven of each stay with the thread, the rest in lists. */
static void hold_lists(void)
{
	size_t size, i;

	for (size = 24; size <= 1032; size += 16) {
		for (i = 0; i < 7; i++)
			blocks[i] = touched(size);
		touched(32);
		for (i = 0; i < 7; i++)
			free(blocks[i]);
	}
	for (i = 0; i < 20000; i++)
		blocks[i] = touched(24 + i % 7 * 16);
	for (i = 0; i < 20000; i += 2)
		free(blocks[i]);
}

/* Blocks of their own mappings, half of each touched; and one of another's. */
static void hold_mapped(void)
{
	size_t i;

	for (i = 0; i < mib; i++) {
		blocks[i] = malloc(MIB);
		memset(blocks[i], 1, MIB / 2);
	}
	free(blocks[mib / 2]);
	if (mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	    MAP_FAILED)
		abort();
}

/* Blocks of their own mappings, each of which is three since the middle of it has advice of its own. */
static void hold_advised(void)
{
	const size_t size = 16 * MIB;
	size_t i;

	for (i = 0; i < mib * MIB / size; i++) {
		char *block = malloc(size), *middle = block + 4 * MIB;

		memset(block, 1, size);
		middle -= (uintptr_t)middle % 4096;
		if (madvise(middle, 8 * MIB, MADV_DONTDUMP))
			abort();
		blocks[i] = block;
	}
}

/* Huge pages, of each of which 5 of 512 small ones are written to; where there are any to be had. */
static void hold_sparse(void)
{
	const size_t huge = 2 * MIB, size = mib * MIB;
	char *start =
		mmap(NULL, size + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t at, i;

	if (start == MAP_FAILED)
		abort();
	start += huge - (uintptr_t)start % huge;
	madvise(start, size, MADV_HUGEPAGE);
	for (at = 0; at < size; at += huge)
		for (i = 0; i < 5; i++)
			start[at + i * 101 * 4096 + 7] = 1;
}

/* In the middle of the heap a size that cannot be. */
static void hold_corrupt(void)
{
	hold_full();
	((size_t *)blocks[mib * 512])[-1] = 0x123456789abcdef0;
}

static void *stay_busy(void *seed)
{
	unsigned int random = (unsigned int)(uintptr_t)seed;
	void *own[512] = { 0 };

	while (busy) {
		size_t i = rand_r(&random) % 512;

		free(own[i]);
		own[i] = touched(16 + rand_r(&random) % 20000);
	}
	return NULL;
}

/* Eight threads that allocate and free all the time, beside what stays. */
static void hold_busy(void)
{
	pthread_t thread;
	size_t i;

	hold_full();
	busy = true;
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, stay_busy, (void *)(i + 1)))
			abort();
}

#define CHILDREN 5

/* As much again in huge pages, where there are any; and children that share all of it. */
static void hold_forked(void)
{
	const size_t huge = 2 * MIB, size = mib * MIB;
	char *start =
		mmap(NULL, size + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t parent = getpid();
	size_t i;

	if (start == MAP_FAILED)
		abort();
	start += huge - (uintptr_t)start % huge;
	madvise(start, size, MADV_HUGEPAGE);
	memset(start, 1, size);
	hold_full();
	for (i = 0; i < CHILDREN; i++) {
		pid_t child = fork();

		if (child < 0)
			abort();
		if (child)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent)
			pause();
		_exit(0);
	}
}

/* All of it locked in memory, and four blocks of five free in whole pages. */
static void hold_locked(void)
{
	size_t count = mib * MIB / 40960, i;

	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		abort();
	for (i = 0; i < count; i++) {
		blocks[i] = touched(32768 - 16);
		touched(8192 - 16);
	}
	for (i = 0; i < count; i++)
		free(blocks[i]);
}

static const struct shape {
	const char *name;
	void (*hold)(void);
} shapes[] = {
	{ "pages", hold_pages },   { "top", hold_top },		{ "full", hold_full },
	{ "arenas", hold_arenas }, { "lists", hold_lists },	{ "mapped", hold_mapped },
	{ "busy", hold_busy },	   { "corrupt", hold_corrupt }, { "sparse", hold_sparse },
	{ "locked", hold_locked }, { "forked", hold_forked },	{ "advised", hold_advised },
};

static size_t resident(void)
{
	char text[128] = "";
	FILE *file = fopen("/proc/self/statm", "r");
	size_t pages = 0;

	if (!file || !fgets(text, sizeof(text), file) || sscanf(text, "%*u %zu", &pages) != 1)
		abort();
	fclose(file);
	return pages * 4096;
}

static void say(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		abort();
}

static void tell(void)
{
	struct INFO info = INFO();
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"arena\": %zu, \"hblks\": %zu, \"hblkhd\": %zu, \"fsmblks\": %zu, "
		 "\"uordblks\": %zu, \"fordblks\": %zu, \"keepcost\": %zu}\n",
		 (size_t)info.arena, (size_t)info.hblks, (size_t)info.hblkhd, (size_t)info.fsmblks,
		 (size_t)info.uordblks, (size_t)info.fordblks, (size_t)info.keepcost);
	say(text);
}

static void trim(void)
{
	size_t before = resident();
	char text[128];

	malloc_trim(0);
	snprintf(text, sizeof(text), "{\"before\": %zu, \"after\": %zu}\n", before, resident());
	say(text);
}

#define LEAKED_BLOCKS 83
#define LEAKED_BYTES 100000

static void leak(void)
{
	size_t i;

	for (i = 0; i < LEAKED_BLOCKS; i++) {
		void *work = touched(LEAKED_BYTES);

		touched(LEAKED_BYTES); /* SITE leak */
		free(work);
	}
	tell();
}

static uint64_t clock_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* How long this thread has waited for a processor. */
static uint64_t waited(void)
{
	char text[128] = "";
	FILE *file = fopen("/proc/thread-self/schedstat", "r");
	size_t ns = 0;

	if (!file || !fgets(text, sizeof(text), file) || sscanf(text, "%*u %zu", &ns) != 1)
		abort();
	fclose(file);
	return ns;
}

/* For so long other blocks in place of those that there are. */
static void work(uint64_t ms)
{
	uint64_t start = clock_of(CLOCK_MONOTONIC), now, turns = 0;
	uint64_t cpu = clock_of(CLOCK_THREAD_CPUTIME_ID), wait = waited();
	static unsigned int random = 1;
	char text[128];
	size_t i, k;

	do {
		for (i = 0; i < 256; i++) {
			k = (size_t)rand_r(&random) % (mib * 1024);
			free(blocks[k]);
			blocks[k] = touched(16 + (size_t)rand_r(&random) % 2000);
		}
		turns += i;
		now = clock_of(CLOCK_MONOTONIC);
	} while (now - start < ms * 1000000);
	snprintf(text, sizeof(text),
		 "{\"turns\": %zu, \"ns\": %zu, \"cpu_ns\": %zu, \"waited_ns\": %zu}\n",
		 (size_t)turns, (size_t)(now - start),
		 (size_t)(clock_of(CLOCK_THREAD_CPUTIME_ID) - cpu), (size_t)(waited() - wait));
	say(text);
}

#define TURN_BYTES 100000

/*
 * Ten times a second other 37 blocks, in place of those of four turns before: a ring of 148 blocks
 * in what is free, of which each is taken again and again.
 */
static void turn(uint64_t ms)
{
	const struct timespec rest = { .tv_nsec = 100000000 };
	uint64_t end = clock_of(CLOCK_MONOTONIC) + ms * 1000000;
	struct rusage before, after;
	static void *own[4][37];
	char text[128];
	size_t i, place = 0;

	getrusage(RUSAGE_SELF, &before);
	while (clock_of(CLOCK_MONOTONIC) < end) {
		for (i = 0; i < 37; i++) {
			free(own[place % 4][i]);
			own[place % 4][i] = touched(TURN_BYTES);
		}
		place++;
		nanosleep(&rest, NULL);
	}
	for (place = 0; place < 4; place++)
		for (i = 0; i < 37; i++) {
			free(own[place][i]);
			own[place][i] = NULL;
		}
	getrusage(RUSAGE_SELF, &after);
	snprintf(text, sizeof(text), "{\"faults\": %ld}\n", after.ru_minflt - before.ru_minflt);
	say(text);
}

/* A list of so many nodes of 32 bytes, taken down from its end. */
static void nodes(size_t count)
{
	struct node {
		struct node *next;
		size_t number;
	} *first = NULL, *node;
	size_t i;

	for (i = 0; i < count; i++) {
		node = touched(sizeof(*node));
		*node = (struct node){ first, i };
		first = node;
	}
	stay(200);
	while (first) {
		node = first->next;
		free(first);
		first = node;
	}
	tell();
}

static bool become(const char *shape)
{
	size_t i;

	for (i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		if (!strcmp(shape, shapes[i].name)) {
			shapes[i].hold();
			return true;
		}
	return false;
}

int main(int argc, char **argv)
{
	char line[64];
	size_t i;

	if (argc > 2)
		mib = strtoul(argv[2], NULL, 10);
	if (argc > 3 && !strcmp(argv[3], "walled"))
		touched(SMALL);
	else if (argc > 3 && strcmp(argv[3], "heapless"))
		abort();
	if (argc > 3 && !wall())
		abort();
	if (argc > 1)
		become(argv[1]);
	/* What it takes to count is allocated and freed now. */
	resident();
	tell();
	for (i = 0;;) {
		char got;

		if (read(STDIN_FILENO, &got, 1) != 1)
			return 0;
		if (got != '\n') {
			line[i++ % (sizeof(line) - 1)] = got;
			continue;
		}
		line[i] = '\0';
		i = 0;
		if (!strcmp(line, "info"))
			tell();
		else if (!strcmp(line, "trim"))
			trim();
		else if (!strcmp(line, "leak"))
			leak();
		else if (!strncmp(line, "work ", 5))
			work(strtoul(line + 5, NULL, 10));
		else if (!strncmp(line, "nodes ", 6))
			nodes(strtoul(line + 6, NULL, 10));
		else if (!strncmp(line, "turn ", 5))
			turn(strtoul(line + 5, NULL, 10));
		else if (become(line))
			tell();
	}
}
