// SPDX-License-Identifier: GPL-2.0
/*
 * owners: blocks that change place, size or hands; each call's pages are known.
 *
 * usage: owners alternate ROUNDS     two calls get the same address alternately
 *        owners grow                 realloc in place, by a mapping that moves, and by a copy
 *        owners remap                mmap, mremap in place and elsewhere, without an allocator
 *        owners exec                 touches a block, becomes itself, touches another
 *        owners hand ROUNDS          eight threads in a ring: each frees what the one before made
 *        owners order ROUNDS         one thread makes blocks, another touches their pages in
 *                                    order; with libbump.so one block begins where another ends
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "witness.h"

/* Bytes of a chunk of its own mapping that fills so many pages, header and all. */
#define FILLS(pages) ((pages)*PAGE - 64)

static NOINLINE void touch_pages(volatile char *block, uint64_t from, uint64_t to)
{
	for (uint64_t page = from; page < to; page++)
		block[page * PAGE] = 1; /* SITE touch */
}

/* ---- alternate ---- */

#define ALTERNATE_PAGES 257
#define USED_PAGES 127

static NOINLINE char *block_used(void)
{
	return malloc(FILLS(ALTERNATE_PAGES)); /* SITE used */
}

static NOINLINE char *block_full(void)
{
	return malloc(FILLS(ALTERNATE_PAGES)); /* SITE full */
}

static int run_alternate(uint64_t rounds)
{
	uint64_t same = 0;
	char *last = NULL;

	/* Always mapped: the kernel gives the hole that the last one left. */
	mallopt(M_MMAP_THRESHOLD, 65536);
	for (uint64_t i = 0; i < 2 * rounds; i++) {
		char *block = i % 2 ? block_full() : block_used();

		if (!block)
			return 1;
		same += block == last;
		touch_pages(block, 0, i % 2 ? ALTERNATE_PAGES : USED_PAGES);
		last = block;
		free(block);
	}
	workload_report("\"same\": %llu, \"used\": %llu, \"full\": %llu", (unsigned long long)same,
			(unsigned long long)(rounds * USED_PAGES),
			(unsigned long long)(rounds * ALTERNATE_PAGES));
	return 0;
}

/* ---- grow ---- */

#define SMALL_PAGES 101
#define LARGE_PAGES 307

static NOINLINE char *block_mapped(void)
{
	return malloc(FILLS(SMALL_PAGES)); /* SITE mapped */
}

static NOINLINE char *grow_mapped(char *block)
{
	return realloc(block, FILLS(LARGE_PAGES)); /* SITE grow_mapped */
}

static NOINLINE char *block_top(void)
{
	return malloc(FILLS(SMALL_PAGES)); /* SITE top */
}

static NOINLINE char *grow_top(char *block)
{
	return realloc(block, FILLS(LARGE_PAGES)); /* SITE grow_top */
}

static NOINLINE char *grow_copied(char *block)
{
	return realloc(block, FILLS(2 * LARGE_PAGES)); /* SITE grow_copied */
}

static int run_grow(void)
{
	char *block, *grown, *wall, *copied;
	uint64_t in_place, moved, faults;

	/* A mapping of its own. What comes after it is taken, so that it must move. */
	mallopt(M_MMAP_THRESHOLD, 65536);
	block = block_mapped();
	wall = mmap((void *)(((uint64_t)block & ~(PAGE - 1)) + SMALL_PAGES * PAGE), PAGE, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (!block || (wall == MAP_FAILED && errno != EEXIST))
		return 1;
	touch_pages(block, 0, SMALL_PAGES);
	grown = grow_mapped(block);
	moved = grown != block;
	faults = witness_faults();
	touch_pages(grown, 0, LARGE_PAGES);
	faults = witness_faults() - faults;

	/* From the heap: at its top it grows in place, before another block it is copied. */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TOP_PAD, 0);
	block = block_top();
	touch_pages(block, 0, SMALL_PAGES);
	grown = grow_top(block);
	in_place = grown == block;
	touch_pages(grown, 0, LARGE_PAGES);
	workload_sink = malloc(1000);
	copied = grow_copied(grown);
	moved += copied != grown;
	workload_report("\"moved\": %llu, \"in_place\": %llu, \"faults\": %llu",
			(unsigned long long)moved, (unsigned long long)in_place,
			(unsigned long long)faults);
	return 0;
}

/* ---- remap ---- */

static NOINLINE char *map_region(uint64_t pages)
{
	const int protection = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;

	return mmap(NULL, pages * PAGE, protection, flags, -1, 0); /* SITE map */
}

static NOINLINE char *grow_region(char *region, uint64_t pages, uint64_t more, int flags)
{
	return mremap(region, pages * PAGE, more * PAGE, flags); /* SITE remap */
}

static NOINLINE char *move_region(char *region, char *to)
{
	const int flags = MREMAP_MAYMOVE | MREMAP_FIXED;

	return mremap(region, LARGE_PAGES * PAGE, 2 * LARGE_PAGES * PAGE, flags,
		      to); /* SITE move */
}

static int run_remap(void)
{
	char *region = map_region(LARGE_PAGES), *other;

	if (region == MAP_FAILED)
		return 1;
	touch_pages(region, 0, SMALL_PAGES);
	/* Shrunk and grown again: the end is fresh. Then taken elsewhere. */
	if (grow_region(region, LARGE_PAGES, SMALL_PAGES, 0) != region ||
	    grow_region(region, SMALL_PAGES, LARGE_PAGES, 0) != region)
		return 1;
	touch_pages(region, SMALL_PAGES, LARGE_PAGES);
	other = map_region(3 * LARGE_PAGES);
	if (other == MAP_FAILED)
		return 1;
	other = move_region(region, other);
	if (other == MAP_FAILED || other == region)
		return 1;
	touch_pages(other, 0, 2 * LARGE_PAGES);
	workload_report("\"fresh\": %llu", (unsigned long long)(2 * LARGE_PAGES));
	return 0;
}

/* ---- exec ---- */

static NOINLINE char *block_before(void)
{
	return malloc(FILLS(LARGE_PAGES)); /* SITE before */
}

static NOINLINE char *block_after(void)
{
	return malloc(FILLS(LARGE_PAGES)); /* SITE after */
}

static int run_exec(char **argv)
{
	char *again[] = { argv[0], "after", NULL };
	char *block = block_before();

	if (!block)
		return 1;
	touch_pages(block, 0, SMALL_PAGES);
	workload_report("\"block\": %llu", (unsigned long long)block);
	execv("/proc/self/exe", again);
	return 127;
}

static int run_after(void)
{
	char *block = block_after();

	if (!block)
		return 1;
	touch_pages(block, 0, LARGE_PAGES);
	/* Where the block before was, if memory is not laid out at random. */
	workload_report("\"block\": %llu", (unsigned long long)block);
	return 0;
}

/* ---- hand ---- */

#define THREADS 8
#define DEPTH 3

struct place {
	char *blocks[DEPTH];
	sem_t room;
	sem_t full;
};

struct worker {
	uint64_t pages; /* a block's */
	uint64_t made;
	uint64_t faults; /* of this thread, while it touched blocks */
	char *(*make)(uint64_t size);
};

static struct place ring[THREADS];
static uint64_t rounds_wanted;

static NOINLINE char *make0(uint64_t size)
{
	return malloc(size); /* SITE hand0 */
}

static NOINLINE char *make1(uint64_t size)
{
	return malloc(size); /* SITE hand1 */
}

static NOINLINE char *make2(uint64_t size)
{
	return calloc(1, size); /* SITE hand2 */
}

static NOINLINE char *make3(uint64_t size)
{
	return malloc(size); /* SITE hand3 */
}

static NOINLINE char *make4(uint64_t size)
{
	return malloc(size); /* SITE hand4 */
}

static NOINLINE char *make5(uint64_t size)
{
	return calloc(size, 1); /* SITE hand5 */
}

static NOINLINE char *make6(uint64_t size)
{
	return aligned_alloc(64, size); /* SITE hand6 */
}

static NOINLINE char *make7(uint64_t size)
{
	return malloc(size); /* SITE hand7 */
}

/* Larger than what a fresh arena holds (132 KiB), so that each gets a mapping of its own. */
static struct worker workers[THREADS] = {
	{ .pages = 41, .make = make0 }, { .pages = 43, .make = make1 },
	{ .pages = 47, .make = make2 }, { .pages = 53, .make = make3 },
	{ .pages = 59, .make = make4 }, { .pages = 61, .make = make5 },
	{ .pages = 67, .make = make6 }, { .pages = 71, .make = make7 },
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	size_t self = (size_t)(worker - workers);
	struct place *mine = &ring[self], *theirs = &ring[(self + THREADS - 1) % THREADS];
	struct rusage before, after;

	/* Makes the thread's arena, of the usual size: the first block must not shape it. */
	workload_sink = malloc(100);
	for (uint64_t i = 0; i < rounds_wanted; i++) {
		char *block = worker->make(FILLS(worker->pages));

		if (!block)
			_exit(1);
		getrusage(RUSAGE_THREAD, &before);
		touch_pages(block, 0, worker->pages);
		getrusage(RUSAGE_THREAD, &after);
		worker->faults += (uint64_t)(after.ru_minflt - before.ru_minflt);
		worker->made++;
		sem_wait(&mine->room);
		mine->blocks[i % DEPTH] = block;
		sem_post(&mine->full);
		sem_wait(&theirs->full);
		free(theirs->blocks[i % DEPTH]);
		sem_post(&theirs->room);
	}
	return NULL;
}

static int run_hand(uint64_t rounds)
{
	pthread_t threads[THREADS];
	uint64_t pages[THREADS];

	mallopt(M_MMAP_THRESHOLD, 65536);
	rounds_wanted = rounds;
	for (size_t i = 0; i < THREADS; i++) {
		sem_init(&ring[i].room, 0, DEPTH);
		sem_init(&ring[i].full, 0, 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, work, &workers[i]))
			return 1;
	}
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		/* The header's page was touched by the allocator. */
		pages[i] = workers[i].faults + workers[i].made;
	}
	workload_report("\"block_pages\": [41, 43, 47, 53, 59, 61, 67, 71], "
			"\"pages\": [%llu, %llu, %llu, %llu, %llu, %llu, %llu, %llu]",
			(unsigned long long)pages[0], (unsigned long long)pages[1],
			(unsigned long long)pages[2], (unsigned long long)pages[3],
			(unsigned long long)pages[4], (unsigned long long)pages[5],
			(unsigned long long)pages[6], (unsigned long long)pages[7]);
	return 0;
}

/* ---- order ---- */

#define THREE 3
#define FIVE 5
#define LAP 8191 /* rounds until all memory is given back */

static _Atomic(char *) handed;

static NOINLINE char *make_three(void)
{
	return malloc(THREE * PAGE); /* SITE three */
}

static NOINLINE char *make_five(void)
{
	return malloc(FIVE * PAGE); /* SITE five */
}

static void hand_over(char *block)
{
	if (!block)
		_exit(1);
	handed = block;
	while (handed)
		sched_yield();
}

static void *make_all(void *argument)
{
	(void)argument;
	for (uint64_t i = 0; i < rounds_wanted; i++) {
		hand_over(make_three());
		hand_over(make_five());
	}
	return NULL;
}

static char *take(void)
{
	char *block;

	while (!(block = handed))
		sched_yield();
	return block;
}

static int run_order(uint64_t rounds)
{
	static char *blocks[2 * LAP];
	int (*restart)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "bump_restart");
	uint64_t made = 0, behind = 0, faults;
	char *end = NULL, *block;
	pthread_t maker;

	rounds_wanted = rounds;
	memset(blocks, 0, sizeof(blocks));
	faults = witness_faults();
	if (!restart || pthread_create(&maker, NULL, make_all, NULL))
		return 1;
	for (uint64_t i = 0; i < 2 * rounds; i++) {
		uint64_t pages = i % 2 ? FIVE : THREE;

		block = take();
		behind += block == end;
		end = block + pages * PAGE;
		touch_pages(block, 0, pages);
		blocks[made++] = block;
		if (made == 2 * LAP) {
			while (made)
				free(blocks[--made]);
			if (restart())
				return 1;
		}
		handed = NULL;
	}
	faults = witness_faults() - faults;
	pthread_join(maker, NULL);
	workload_report("\"behind\": %llu, \"faults\": %llu", (unsigned long long)behind,
			(unsigned long long)faults);
	return 0;
}

int main(int argc, char **argv)
{
	alarm(WORKLOAD_LIFE_S);
	if (argc > 2 && !strcmp(argv[1], "alternate"))
		return run_alternate(workload_number(argv[0], argv[2]));
	if (argc > 2 && !strcmp(argv[1], "hand"))
		return run_hand(workload_number(argv[0], argv[2]));
	if (argc > 2 && !strcmp(argv[1], "order"))
		return run_order(workload_number(argv[0], argv[2]));
	if (argc > 1 && !strcmp(argv[1], "grow"))
		return run_grow();
	if (argc > 1 && !strcmp(argv[1], "remap"))
		return run_remap();
	if (argc > 1 && !strcmp(argv[1], "exec"))
		return run_exec(argv);
	if (argc > 1 && !strcmp(argv[1], "after"))
		return run_after();
	return 2;
}
