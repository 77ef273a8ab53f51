// SPDX-License-Identifier: GPL-2.0
/*
 * arenas: eight threads that keep the allocator busy at once, each with its own arena, or with
 * MALLOC_ARENA_MAX=1 all with one.
 *
 * usage: arenas ROUNDS
 * In each round a thread makes a block, grows it where it cannot grow in place (glibc copies it while
 * it holds the lock of the arena), and frees it. Counts the nanoseconds its own clock saw in malloc.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

#include "workload.h"

#define THREADS 8
#define BLOCK (4 << 20)
#define FENCE 4096

static pthread_barrier_t barrier;
static uint64_t rounds;
static atomic_ullong malloc_ns;

static NOINLINE void *thread_malloc(uint64_t size)
{
	void *volatile block = malloc(size); /* SITE malloc */

	return block;
}

static NOINLINE void *thread_realloc(void *old, uint64_t size)
{
	void *volatile block = realloc(old, size); /* SITE realloc */

	return block;
}

static NOINLINE void thread_free(void *block)
{
	free(block); /* SITE free */
	__asm__ volatile("" ::: "memory");
}

static void *work(void *argument)
{
	uint64_t start, ns = 0;
	void *block, *fence;

	pthread_barrier_wait(&barrier);
	for (uint64_t i = 0; i < rounds; i++) {
		start = workload_clock(CLOCK_MONOTONIC);
		block = thread_malloc(BLOCK);
		fence = thread_malloc(FENCE);
		ns += workload_clock(CLOCK_MONOTONIC) - start;
		block = thread_realloc(block, 2 * BLOCK);
		thread_free(block);
		thread_free(fence);
	}
	atomic_fetch_add(&malloc_ns, ns);
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	alarm(WORKLOAD_LIFE_S);
	if (argc != 2)
		return 2;
	rounds = workload_number(argv[0], argv[1]);
	/* All from the arenas, and nothing given back in between. */
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	if (pthread_barrier_init(&barrier, NULL, THREADS))
		return 1;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	workload_report("\"malloc\": %llu, \"malloc_ns\": %llu",
			(unsigned long long)(2 * THREADS * rounds),
			(unsigned long long)atomic_load(&malloc_ns));
	return 0;
}
