// SPDX-License-Identifier: GPL-2.0
/*
 * consolidate: the deferred work (casebook, entry 6).
 *
 * usage: consolidate N [SIZE] [--between]
 * N times malloc(4), then all are freed, then one malloc of SIZE bytes (1024), timed by the program's
 * own clock. With --between stdio gets its buffer after the small blocks, which then do not lie
 * beside the top of the heap.
 */
#include <sys/mman.h>

#include "workload.h"

static NOINLINE void *small_malloc(void)
{
	void *volatile block = malloc(4); /* SITE small */

	return block;
}

static NOINLINE void small_free(void *block)
{
	free(block); /* SITE free */
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void *large_malloc(uint64_t size)
{
	void *volatile block = malloc(size); /* SITE large */

	return block;
}

int main(int argc, char **argv)
{
	uint64_t count, size = 1024, start, took;
	int between = 0;
	void **blocks;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 2)
		return 2;
	count = workload_number(argv[0], argv[1]);
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--between"))
			between = 1;
		else
			size = workload_number(argv[0], argv[i]);
	}
	/* Not from the heap, and touched before: nothing but the small blocks counts. */
	blocks = mmap(NULL, count * sizeof(*blocks), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (blocks == MAP_FAILED)
		return 1;
	for (uint64_t i = 0; i < count; i++)
		blocks[i] = small_malloc();
	if (between)
		puts("between");
	for (uint64_t i = 0; i < count; i++)
		small_free(blocks[i]);
	start = workload_clock(CLOCK_MONOTONIC);
	workload_sink = large_malloc(size);
	took = workload_clock(CLOCK_MONOTONIC) - start;
	if (between)
		fflush(stdout);
	workload_report("\"count\": %llu, \"took_ns\": %llu", (unsigned long long)count,
			(unsigned long long)took);
	return 0;
}
