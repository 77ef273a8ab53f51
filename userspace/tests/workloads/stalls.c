// SPDX-License-Identifier: GPL-2.0
/*
 * stalls: single calls of the allocator that take long, each for another reason; each is timed by
 * the program's own clock.
 *
 * usage: stalls trim MIB       a free that gives MIB of heap back: its block has lain under the top
 *        stalls swapped MIB    a malloc of 1 KiB after MIB of small free blocks have been pushed out;
 *                              waits for a line before it, so that somebody can push
 *        stalls clear MIB      a calloc that clears MIB of reused heap
 */
#include <malloc.h>

#include "workload.h"

static NOINLINE void *timed_malloc(uint64_t size, uint64_t *took)
{
	uint64_t start = workload_clock(CLOCK_MONOTONIC);
	void *volatile block = malloc(size); /* SITE malloc */

	*took = workload_clock(CLOCK_MONOTONIC) - start;
	return block;
}

static NOINLINE void *timed_calloc(uint64_t size, uint64_t *took)
{
	uint64_t start = workload_clock(CLOCK_MONOTONIC);
	void *volatile block = calloc(1, size); /* SITE calloc */

	*took = workload_clock(CLOCK_MONOTONIC) - start;
	return block;
}

static NOINLINE void timed_free(void *block, uint64_t *took)
{
	uint64_t start = workload_clock(CLOCK_MONOTONIC);

	free(block); /* SITE free */
	*took = workload_clock(CLOCK_MONOTONIC) - start;
}

/* Short calls, so that there is a median. */
static void warm_up(void)
{
	for (int i = 0; i < 1009; i++) {
		void *volatile block = malloc(24);

		free(block);
	}
	for (int i = 0; i < 1009; i++) {
		void *volatile block = calloc(1, 24);

		free(block);
	}
}

static uint64_t trim(uint64_t bytes)
{
	uint64_t took;
	char *block;

	/* From the heap, not by a mapping of its own; the rest of the heap is given back with it. */
	mallopt(M_MMAP_MAX, 0);
	block = timed_malloc(bytes, &took);
	memset(block, 1, bytes);
	timed_free(block, &took);
	return took;
}

#define SMALL 96

static uint64_t swapped(uint64_t bytes)
{
	uint64_t count = bytes / (SMALL + 16), took;
	void **blocks = calloc(count, sizeof(*blocks));

	for (uint64_t i = 0; i < count; i++)
		blocks[i] = memset(malloc(SMALL), 1, SMALL);
	/* Every second one, so that none can be joined with its neighbour. */
	for (uint64_t i = 0; i < count; i += 2)
		free(blocks[i]);
	workload_wait();
	/* What every call needs of code and data comes back before the clock runs. */
	warm_up();
	workload_sink = timed_malloc(1024, &took);
	return took;
}

static uint64_t clear(uint64_t bytes)
{
	uint64_t took;

	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	free(memset(timed_malloc(bytes, &took), 1, bytes));
	workload_sink = timed_calloc(bytes, &took);
	return took;
}

int main(int argc, char **argv)
{
	uint64_t bytes, took;

	alarm(WORKLOAD_LIFE_S);
	if (argc != 3)
		return 2;
	bytes = workload_number(argv[0], argv[2]) << 20;
	warm_up();
	if (!strcmp(argv[1], "trim"))
		took = trim(bytes);
	else if (!strcmp(argv[1], "swapped"))
		took = swapped(bytes);
	else if (!strcmp(argv[1], "clear"))
		took = clear(bytes);
	else
		return 2;
	workload_report("\"took_ns\": %llu", (unsigned long long)took);
	return 0;
}
