// SPDX-License-Identifier: GPL-2.0
/*
 * churn: small blocks that stay in the thread cache (casebook, entry 8), and every function of
 * the malloc family a known number of times.
 *
 * usage: churn N [--family] [--wait] [--seconds S] [--rest US] [--size BYTES]
 *   N            calls of malloc, and as many of free, at SITE malloc and SITE free
 *   --family     then also realloc, reallocarray, posix_memalign, aligned_alloc, memalign and
 *                calloc, each another prime number of times
 *   --rest US    with --seconds: sleep so long after each 64 pairs
 *   --size BYTES every block has this size; without it sizes go from 24 to 504
 */
#include <malloc.h>

#include "workload.h"

#define RING 4

/* All different primes, so that a count says by itself which function it belongs to. */
#define CALLOC_CALLS 1009
#define REALLOC_CALLS 2003
#define REALLOCARRAY_CALLS 1511
#define POSIX_MEMALIGN_CALLS 1301
#define ALIGNED_ALLOC_CALLS 1201
#define MEMALIGN_CALLS 1103

static uint64_t bytes_asked;
static uint64_t fixed_size;

static uint64_t block_size(uint64_t i)
{
	return fixed_size ? fixed_size : 24 + i % 31 * 16;
}

static NOINLINE void *small_malloc(uint64_t size)
{
	void *block = malloc(size); /* SITE malloc */

	workload_sink = block;
	return block;
}

static NOINLINE void small_free(void *block)
{
	free(block); /* SITE free */
	workload_sink = NULL;
}

static void *ring[RING];
static uint64_t ring_frees;

/* Every call of malloc but the last RING is answered by a free of an older block. */
static void churn_step(uint64_t i)
{
	void **slot = &ring[i % RING];
	uint64_t size = block_size(i);

	if (*slot) {
		small_free(*slot);
		ring_frees++;
	}
	*slot = small_malloc(size);
	bytes_asked += size;
}

static void churn_drain(void)
{
	for (int i = 0; i < RING; i++) {
		if (!ring[i])
			continue;
		small_free(ring[i]);
		ring_frees++;
		ring[i] = NULL;
	}
}

static NOINLINE void *zeroed(uint64_t size)
{
	void *block = calloc(size, 1); /* SITE calloc */

	workload_sink = block;
	return block;
}

static NOINLINE void *grown(void *block, uint64_t size)
{
	block = realloc(block, size); /* SITE realloc */
	workload_sink = block;
	return block;
}

static NOINLINE void *grown_array(void *block, uint64_t count)
{
	block = reallocarray(block, count, 8); /* SITE reallocarray */
	workload_sink = block;
	return block;
}

static NOINLINE void *posix_aligned(void)
{
	void *block = NULL;
	int err = posix_memalign(&block, 64, 192); /* SITE posix_memalign */

	workload_sink = block;
	return err ? NULL : block;
}

static NOINLINE void *c11_aligned(void)
{
	void *block = aligned_alloc(128, 256); /* SITE aligned_alloc */

	workload_sink = block;
	return block;
}

static NOINLINE void *old_aligned(void)
{
	void *block = memalign(32, 160); /* SITE memalign */

	workload_sink = block;
	return block;
}

static NOINLINE void family_free(void *block)
{
	free(block); /* SITE family_free */
	workload_sink = NULL;
}

static void family(void)
{
	void *block = NULL;

	for (int i = 0; i < CALLOC_CALLS; i++)
		family_free(zeroed(48));
	for (int i = 0; i < REALLOC_CALLS; i++)
		block = grown(block, 100 + (uint64_t)i % 7 * 40);
	family_free(block);
	block = NULL;
	for (int i = 0; i < REALLOCARRAY_CALLS; i++)
		block = grown_array(block, 10 + (uint64_t)i % 5 * 8);
	family_free(block);
	for (int i = 0; i < POSIX_MEMALIGN_CALLS; i++)
		family_free(posix_aligned());
	for (int i = 0; i < ALIGNED_ALLOC_CALLS; i++)
		family_free(c11_aligned());
	for (int i = 0; i < MEMALIGN_CALLS; i++)
		family_free(old_aligned());
}

static uint64_t churn(uint64_t calls, uint64_t seconds, uint64_t rest_us)
{
	struct workload_pace pace;
	uint64_t i = 0;

	if (!seconds) {
		for (; i < calls; i++)
			churn_step(i);
		return i;
	}
	workload_pace_start(&pace, seconds);
	do {
		for (int step = 0; step < 64; step++)
			churn_step(i++);
		if (rest_us)
			usleep(rest_us);
	} while (workload_pace_step(&pace, i));
	return i;
}

int main(int argc, char **argv)
{
	uint64_t calls, made, seconds = 0, rest_us = 0;
	int all = 0, wait = 0;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 2)
		return 2;
	calls = workload_number(argv[0], argv[1]);
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--family"))
			all = 1;
		else if (!strcmp(argv[i], "--wait"))
			wait = 1;
		else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
			seconds = workload_number(argv[0], argv[++i]);
		else if (!strcmp(argv[i], "--rest") && i + 1 < argc)
			rest_us = workload_number(argv[0], argv[++i]);
		else if (!strcmp(argv[i], "--size") && i + 1 < argc)
			fixed_size = workload_number(argv[0], argv[++i]);
		else
			return 2;
	}
	if (wait)
		workload_wait();
	made = churn(calls, seconds, rest_us);
	churn_drain();
	if (all)
		family();
	workload_report("\"malloc\": %llu, \"free\": %llu, \"bytes\": %llu, \"calloc\": %d, "
			"\"realloc\": %d, \"reallocarray\": %d, \"posix_memalign\": %d, "
			"\"aligned_alloc\": %d, \"memalign\": %d, \"family_free\": %d",
			(unsigned long long)made, (unsigned long long)ring_frees,
			(unsigned long long)bytes_asked, all * CALLOC_CALLS, all * REALLOC_CALLS,
			all * REALLOCARRAY_CALLS, all * POSIX_MEMALIGN_CALLS,
			all * ALIGNED_ALLOC_CALLS, all * MEMALIGN_CALLS,
			all * (CALLOC_CALLS + 2 + POSIX_MEMALIGN_CALLS + ALIGNED_ALLOC_CALLS +
			       MEMALIGN_CALLS));
	return 0;
}
