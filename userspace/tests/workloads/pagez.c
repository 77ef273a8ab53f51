// SPDX-License-Identifier: GPL-2.0
/*
 * pagez: allocate CHUNKS blocks of 8 MiB, then write one byte of every page of all of them, PASSES
 * times (casebook 4). In less memory than they need, the passes go through swap.
 *
 * usage: pagez CHUNKS PASSES [--store | --zero | --load | --random | --hold]
 *   --store   a plain store; else one instruction that reads, changes and writes
 *   --zero    a plain store of 0, so that the page stays full of zeros
 *   --load    two instructions, as compilers make of p[i]++ without optimisation
 *   --random  the pages of all chunks in no order
 *   --hold    then keep the memory and wait for a line, and go over it once more
 * Tells the pages that are on swap at the end.
 */
#include "witness.h"

#define CHUNK (8UL << 20)
#define CHUNKS_MAX 128

static NOINLINE char *make_chunk(void)
{
	return malloc(CHUNK); /* SITE malloc */
}

static NOINLINE void change_pages(char *chunk)
{
	for (unsigned long at = 0; at < CHUNK; at += PAGE)
		__asm__ volatile("incb %0" : "+m"(chunk[at])); /* SITE change */
}

static NOINLINE void store_pages(volatile char *chunk)
{
	for (unsigned long at = 0; at < CHUNK; at += PAGE)
		chunk[at] = 1; /* SITE store */
}

static NOINLINE void clear_pages(volatile char *chunk)
{
	for (unsigned long at = 0; at < CHUNK; at += PAGE)
		chunk[at] = 0; /* SITE clear */
}

static NOINLINE void load_pages(volatile char *chunk)
{
	for (unsigned long at = 0; at < CHUNK; at += PAGE) {
		char value = chunk[at]; /* SITE load */

		chunk[at] = value + 1; /* SITE back */
	}
}

/* Every page once, in the order of a full-period generator (Knuth, TAOCP 3.2.1.2). */
static NOINLINE void random_pages(char **chunks, unsigned long count)
{
	unsigned long pages = count * (CHUNK / PAGE), period = 1, at = 1;

	while (period < pages)
		period *= 2;
	for (unsigned long i = 0; i < period; i++) {
		at = (at * 1664525 + 1013904223) % period;
		if (at < pages)
			chunks[at / (CHUNK / PAGE)][at % (CHUNK / PAGE) * PAGE]++; /* SITE random */
	}
}

static void pass_over(char **chunks, unsigned long count, const char *how)
{
	if (!strcmp(how, "--random")) {
		random_pages(chunks, count);
		return;
	}
	for (unsigned long i = 0; i < count; i++) {
		if (!strcmp(how, "--store"))
			store_pages(chunks[i]);
		else if (!strcmp(how, "--zero"))
			clear_pages(chunks[i]);
		else if (!strcmp(how, "--load"))
			load_pages(chunks[i]);
		else
			change_pages(chunks[i]);
	}
}

int main(int argc, char **argv)
{
	char *chunks[CHUNKS_MAX];
	unsigned long count, passes;
	const char *how;
	uint64_t swapped;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 3)
		return 2;
	count = workload_number(argv[0], argv[1]);
	passes = workload_number(argv[0], argv[2]);
	how = argc > 3 ? argv[3] : "";
	if (count > CHUNKS_MAX)
		return 2;
	for (unsigned long i = 0; i < count; i++)
		chunks[i] = make_chunk();
	for (unsigned long pass = 0; pass < passes; pass++)
		pass_over(chunks, count, how);
	if (!strcmp(how, "--hold")) {
		workload_wait();
		pass_over(chunks, count, how);
	}
	swapped = witness_smaps(NULL, UINT64_MAX, "Swap") * 1024 / PAGE;
	workload_report("\"chunks\": %lu, \"passes\": %lu, \"pages\": %lu, \"swapped\": %llu",
			count, passes, count * (CHUNK / PAGE), (unsigned long long)swapped);
	return 0;
}
