// SPDX-License-Identifier: GPL-2.0
/*
 * heaps: threads fill several heaps of 64 MiB in their arenas with blocks below the mmap threshold,
 * and empty them, again and again; with MALLOC_ARENA_MAX=1 all of them the main arena.
 *
 * usage: heaps SHAPE ROUNDS COUNT SIZE THREADS [wait]
 *   forward  in each round each thread makes COUNT blocks of SIZE bytes, writes to every page of them, and
 *            frees them in the order they were made
 *   reverse  the same, but the last one first
 *   trim     as forward, but the last block stays, so that what is freed lies below it, until one
 *            thread calls malloc_trim(3)
 *   wait: for a line on standard input after the first round
 * Counts, in all rounds but the first, what has left the heaps while blocks were freed (by pagemap; and
 * heaps that are no longer mapped, by mincore(2)), and faults (by getrusage(2)). All threads stand
 * still while one counts.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "witness.h"

#define COUNT_MAX 4096
#define THREADS_MAX 8
#define HEAPS_MAX 64
#define HEAP_MAX (64UL << 20) /* glibc, malloc/arena.c: an arena's heaps lie on such a boundary */

static pthread_barrier_t barrier;
static const char *shape;
static uint64_t rounds, count, size, threads, waits;
static char *blocks[THREADS_MAX][COUNT_MAX];

static uint64_t faults, gone_pages, gone_heaps;

/* That the blocks of the round lie in. */
static uint64_t heaps[HEAPS_MAX], heaps_count;

static NOINLINE char *make_block(void)
{
	return malloc(size); /* SITE malloc */
}

static NOINLINE void drop_block(char *block)
{
	free(block); /* SITE free */
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void trim(void)
{
	malloc_trim(0); /* SITE trim */
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void use(volatile char *block)
{
	for (uint64_t at = 0; at < size; at += PAGE)
		block[at] = 1; /* SITE use */
}

static void look_for_heaps(void)
{
	uint64_t heap, i, j;

	heaps_count = 0;
	for (i = 0; i < threads * count; i++) {
		heap = (uint64_t)blocks[i / count][i % count] & ~(HEAP_MAX - 1);
		for (j = heaps_count; j && heaps[j - 1] != heap; j--)
			;
		if (!j && heaps_count == HEAPS_MAX)
			_exit(1);
		if (!j)
			heaps[heaps_count++] = heap;
	}
}

static uint64_t pages_in_heaps(void)
{
	uint64_t pages = 0;

	for (uint64_t i = 0; i < heaps_count; i++)
		pages += witness_present((void *)heaps[i], HEAP_MAX);
	return pages;
}

static uint64_t heaps_gone(void)
{
	unsigned char resident;
	uint64_t gone = 0;

	for (uint64_t i = 0; i < heaps_count; i++)
		gone += mincore((void *)heaps[i], PAGE, &resident) && errno == ENOMEM;
	return gone;
}

static void make_blocks(char **mine)
{
	uint64_t first_kept = *shape == 't' && mine[count - 1] ? count - 1 : count;

	for (uint64_t i = 0; i < first_kept; i++) {
		mine[i] = make_block();
		if (!mine[i])
			_exit(1);
		use(mine[i]);
	}
}

static void drop_blocks(char **mine)
{
	if (*shape == 'r')
		for (uint64_t i = count; i--;)
			drop_block(mine[i]);
	else
		for (uint64_t i = 0; i < count - (*shape == 't'); i++)
			drop_block(mine[i]);
}

/* All threads meet; then the first one is alone until it has looked. */
static bool first_of_all(uint64_t thread)
{
	pthread_barrier_wait(&barrier);
	return !thread;
}

static void one_round(uint64_t thread, uint64_t round)
{
	static uint64_t before;

	make_blocks(blocks[thread]);
	if (first_of_all(thread)) {
		look_for_heaps();
		before = pages_in_heaps();
	}
	pthread_barrier_wait(&barrier);
	drop_blocks(blocks[thread]);
	if (!first_of_all(thread))
		return;
	if (*shape == 't')
		trim();
	if (round) {
		gone_pages += before - pages_in_heaps();
		gone_heaps += heaps_gone();
		return;
	}
	if (waits)
		workload_wait();
	faults = witness_faults();
}

static void *run(void *number)
{
	uint64_t thread = (uint64_t)number;

	for (uint64_t round = 0; round < rounds; round++) {
		one_round(thread, round);
		pthread_barrier_wait(&barrier);
	}
	pthread_barrier_wait(&barrier);
	if (thread) /* no thread ends: that would give memory back, too */
		pause();
	workload_report(
		"\"rounds\": %llu, \"faults\": %llu, \"gone_pages\": %llu, \"gone_heaps\": %llu",
		(unsigned long long)rounds, (unsigned long long)(witness_faults() - faults),
		(unsigned long long)gone_pages, (unsigned long long)gone_heaps);
	_exit(0);
}

int main(int argc, char **argv)
{
	pthread_t ids[THREADS_MAX];

	alarm(WORKLOAD_LIFE_S);
	if (argc < 6)
		return 2;
	shape = argv[1];
	rounds = workload_number(argv[0], argv[2]);
	count = workload_number(argv[0], argv[3]);
	size = workload_number(argv[0], argv[4]);
	threads = workload_number(argv[0], argv[5]);
	waits = argc > 6;
	if (!count || count > COUNT_MAX || !threads || threads > THREADS_MAX)
		return 2;
	if (pthread_barrier_init(&barrier, NULL, (unsigned int)threads))
		return 1;
	for (uint64_t i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, run, (void *)i))
			return 1;
	for (uint64_t i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	return 0;
}
