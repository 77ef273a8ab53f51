// SPDX-License-Identifier: GPL-2.0
/*
 * sites: allocations from many places, each with a stack of its own.
 *
 * usage: sites SITES CALLS [--size BYTES] [--rounds N] [--wait]
 * Site i makes CALLS blocks, below a chain of calls that its number spells in bits. Without --size, of
 * 24 to 504 bytes. Site i keeps every (i % 3 + 1)th block, and frees the others.
 */
#include "workload.h"

#define LEVELS 14

static uint64_t size, kept;

static NOINLINE void *site_malloc(uint64_t bytes)
{
	void *volatile block = malloc(bytes); /* SITE malloc */

	return block;
}

static void work(uint64_t site, uint64_t calls)
{
	uint64_t bytes, asked = 0, live = 0;

	for (uint64_t i = 0; i < calls; i++) {
		void *block;

		bytes = size ? size : 24 + (i * 7 + site) % 31 * 16;
		asked += bytes;
		block = site_malloc(bytes);
		if (!size && i % (site % 3 + 1) == 0) {
			live += bytes;
			workload_sink = block;
		} else {
			free(block);
		}
	}
	kept += live;
	if (!size)
		workload_report("\"site\": %llu, \"calls\": %llu, \"bytes\": %llu, \"live\": %llu",
				(unsigned long long)site, (unsigned long long)calls,
				(unsigned long long)asked, (unsigned long long)live);
}

static NOINLINE void left(uint64_t site, uint64_t calls, int level);

static NOINLINE void right(uint64_t site, uint64_t calls, int level)
{
	if (level == LEVELS)
		work(site, calls);
	else if (site >> level & 1)
		right(site, calls, level + 1);
	else
		left(site, calls, level + 1);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void left(uint64_t site, uint64_t calls, int level)
{
	if (level == LEVELS)
		work(site, calls);
	else if (site >> level & 1)
		right(site, calls, level + 1);
	else
		left(site, calls, level + 1);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	uint64_t sites, calls, rounds = 1;
	int wait = 0;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 3)
		return 2;
	sites = workload_number(argv[0], argv[1]);
	calls = workload_number(argv[0], argv[2]);
	for (int i = 3; i < argc; i++) {
		if (!strcmp(argv[i], "--size") && i + 1 < argc)
			size = workload_number(argv[0], argv[++i]);
		else if (!strcmp(argv[i], "--rounds") && i + 1 < argc)
			rounds = workload_number(argv[0], argv[++i]);
		else if (!strcmp(argv[i], "--wait"))
			wait = 1;
		else
			return 2;
	}
	if (sites > 1 << LEVELS)
		return 2;
	if (wait)
		workload_wait();
	for (uint64_t round = 0; round < rounds; round++)
		for (uint64_t site = 0; site < sites; site++)
			left(site, calls, 0);
	workload_report("\"kept\": %llu, \"calls\": %llu", (unsigned long long)kept,
			(unsigned long long)(sites * calls * rounds));
	return 0;
}
