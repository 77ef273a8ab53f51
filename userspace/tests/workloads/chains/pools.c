// SPDX-License-Identifier: GPL-2.0
/*
 * pools: memory that is touched in order, as an allocator does that cuts it into pools of four pages:
 * the first of each where the pool is made, the others where objects are.
 *
 * usage: pools COUNT CHANGE
 *   CHANGE  from this pool on objects come from another caller
 */
#include <sys/mman.h>

#include "../workload.h"

#define PAGE 4096UL
#define POOL (4 * PAGE)

static volatile int back;

static NOINLINE void make_pool(char *page)
{
	*(volatile char *)page = 1;
	back++;
}

static NOINLINE void make_object(char *page)
{
	*(volatile char *)page = 2;
	back += 2;
}

static NOINLINE void early(char *page)
{
	make_object(page);
	back += 3;
}

static NOINLINE void late(char *page)
{
	make_object(page);
	back += 4;
}

int main(int argc, char **argv)
{
	unsigned long count, change, pool, page;
	char *memory;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 3)
		return 2;
	count = workload_number(argv[0], argv[1]);
	change = workload_number(argv[0], argv[2]);
	memory = mmap(NULL, count * POOL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (memory == MAP_FAILED || madvise(memory, count * POOL, MADV_NOHUGEPAGE))
		return 1;
	for (pool = 0; pool < count; pool++) {
		make_pool(memory + pool * POOL);
		for (page = 1; page < 4; page++) {
			if (pool < change)
				early(memory + pool * POOL + page * PAGE);
			else
				late(memory + pool * POOL + page * PAGE);
		}
	}
	workload_report("\"make_pool\": %lu, \"early\": %lu, \"late\": %lu", count, 3 * change,
			3 * (count - change));
	return 0;
}
