// SPDX-License-Identifier: GPL-2.0
/*
 * threads8: eight threads that allocate at once, each another prime number of times.
 *
 * usage: threads8 [SCALE] [--wait]
 * Every thread makes count[i] * SCALE calls of malloc and calloc alternately, of sizes from 24 bytes
 * to 200 KiB (so some are above and most below memtoll's --min-size), and frees each block.
 */
#include <pthread.h>

#include "workload.h"

#define THREADS 8

static const uint64_t counts[THREADS] = { 1009, 1103, 1201, 1301, 1409, 1511, 1601, 1709 };

struct tally {
	uint64_t mallocs;
	uint64_t callocs;
	uint64_t frees;
	uint64_t bytes;
};

static struct tally tallies[THREADS];
static pthread_barrier_t barrier;
static uint64_t scale = 1;

static NOINLINE void *thread_malloc(uint64_t size)
{
	void *volatile block = malloc(size); /* SITE malloc */

	return block;
}

static NOINLINE void *thread_calloc(uint64_t size)
{
	void *volatile block = calloc(1, size); /* SITE calloc */

	return block;
}

static NOINLINE void thread_free(void *block)
{
	free(block); /* SITE free */
	__asm__ volatile("" ::: "memory");
}

static uint64_t mixed_size(uint64_t i)
{
	if (i % 29 == 0)
		return 200 * 1024;
	return 24 + i % 97 * 40;
}

static void *work(void *argument)
{
	struct tally *tally = argument;
	uint64_t calls = counts[tally - tallies] * scale;

	pthread_barrier_wait(&barrier);
	for (uint64_t i = 0; i < calls; i++) {
		uint64_t size = mixed_size(i);
		volatile char *block;

		if (i % 2) {
			block = thread_malloc(size);
			tally->mallocs++;
		} else {
			block = thread_calloc(size);
			tally->callocs++;
		}
		if (!block)
			return argument;
		block[0] = 1;
		tally->bytes += size;
		thread_free((void *)block);
		tally->frees++;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	struct tally sum = { 0 };
	int failed = 0;

	alarm(WORKLOAD_LIFE_S);
	if (argc > 1)
		scale = workload_number(argv[0], argv[1]);
	if (argc > 2 && !strcmp(argv[2], "--wait"))
		workload_wait();
	if (pthread_barrier_init(&barrier, NULL, THREADS))
		return 1;
	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, work, &tallies[i]))
			return 1;
	}
	for (int i = 0; i < THREADS; i++) {
		void *result;

		pthread_join(threads[i], &result);
		failed |= result != NULL;
		sum.mallocs += tallies[i].mallocs;
		sum.callocs += tallies[i].callocs;
		sum.frees += tallies[i].frees;
		sum.bytes += tallies[i].bytes;
	}
	workload_report("\"malloc\": %llu, \"calloc\": %llu, \"free\": %llu, \"bytes\": %llu",
			(unsigned long long)sum.mallocs, (unsigned long long)sum.callocs,
			(unsigned long long)sum.frees, (unsigned long long)sum.bytes);
	return failed;
}
