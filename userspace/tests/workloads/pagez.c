// SPDX-License-Identifier: GPL-2.0
/*
 * pagez: allocate CHUNKS blocks of 8 MiB, then write one byte of every page of all of them, PASSES
 * times (casebook 4). In less memory than they need, the passes go through swap.
 *
 * usage: pagez CHUNKS PASSES [--store | --hold]
 *   --store  a plain store; else one instruction that reads, changes and writes
 *   --hold   then keep the memory and wait for a line
 */
#include "workload.h"

#define PAGE 4096UL
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

int main(int argc, char **argv)
{
	char *chunks[CHUNKS_MAX];
	unsigned long count, passes;
	int store;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 3)
		return 2;
	count = workload_number(argv[0], argv[1]);
	passes = workload_number(argv[0], argv[2]);
	store = argc > 3 && !strcmp(argv[3], "--store");
	if (count > CHUNKS_MAX)
		return 2;
	for (unsigned long i = 0; i < count; i++)
		chunks[i] = make_chunk();
	for (unsigned long pass = 0; pass < passes; pass++)
		for (unsigned long i = 0; i < count; i++)
			store ? store_pages(chunks[i]) : change_pages(chunks[i]);
	if (argc > 3 && !strcmp(argv[3], "--hold"))
		workload_wait();
	workload_report("\"chunks\": %lu, \"passes\": %lu, \"pages\": %lu", count, passes,
			count * (CHUNK / PAGE));
	return 0;
}
