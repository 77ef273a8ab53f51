// SPDX-License-Identifier: GPL-2.0
/*
 * areas: pages of every kind of memory that is not a large block.
 *
 * usage: areas heap|arena BLOCKS          small blocks, by the first thread or by another
 *        areas stack|thread-stack FRAMES  a deep recursion, a page a frame, likewise
 *        areas hugetlb PAGES              MAP_HUGETLB
 *        areas library FILE               read the constants of libpages.so
 * Tells how many pages of the area are mapped before and after.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include "libpages.h"
#include "witness.h"

#define BLOCK_BYTES 1008
#define HEAP_MAX (64UL << 20) /* glibc, malloc/arena.c: an arena lies on such a boundary */
#define HUGE (2UL << 20)

struct counts {
	uint64_t number; /* of blocks or frames */
	uint64_t before; /* pages present in the area */
	uint64_t after;
	uint64_t faults;
	int failed;
};

static NOINLINE void *small_block(void)
{
	return malloc(BLOCK_BYTES); /* SITE block */
}

static NOINLINE void fill_blocks(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		char *block = small_block(); /* SITE caller */

		memset(block, 1, BLOCK_BYTES); /* SITE fill */
	}
}

static NOINLINE uint64_t recurse(uint64_t depth)
{
	volatile char frame[PAGE];

	frame[0] = (char)depth;					    /* SITE frame */
	return depth ? recurse(depth - 1) + (uint64_t)frame[0] : 0; /* SITE recurse */
}

static void use_heap(struct counts *counts)
{
	char *start = sbrk(0);

	start = (char *)((uint64_t)start & ~(PAGE - 1)) - 33 * PAGE;
	counts->before = witness_present(start, counts->number * (BLOCK_BYTES + 16) + 99 * PAGE);
	counts->faults = witness_faults();
	fill_blocks(counts->number);
	counts->faults = witness_faults() - counts->faults;
	counts->after = witness_present(start, counts->number * (BLOCK_BYTES + 16) + 99 * PAGE);
}

static void *use_arena(void *argument)
{
	struct counts *counts = argument;
	/* The first block makes the arena. */
	char *heap = (char *)((uint64_t)small_block() & ~(HEAP_MAX - 1));

	counts->before = witness_present(heap, HEAP_MAX);
	counts->faults = witness_faults();
	fill_blocks(counts->number);
	counts->faults = witness_faults() - counts->faults;
	counts->after = witness_present(heap, HEAP_MAX);
	return NULL;
}

static void *use_stack(void *argument)
{
	struct counts *counts = argument;
	char *low = (char *)__builtin_frame_address(0) - (counts->number + 9) * (PAGE + 64);
	uint64_t span = (counts->number + 10) * (PAGE + 64);

	counts->before = witness_present(low, span);
	counts->faults = witness_faults();
	counts->failed |= recurse(counts->number) == 0;
	counts->faults = witness_faults() - counts->faults;
	counts->after = witness_present(low, span);
	return NULL;
}

static void in_thread(void *(*use)(void *), struct counts *counts)
{
	pthread_attr_t attributes;
	pthread_t thread;

	counts->failed |= pthread_attr_init(&attributes);
	counts->failed |= pthread_attr_setstacksize(&attributes, 61UL << 20);
	counts->failed |= pthread_create(&thread, &attributes, use, counts);
	if (!counts->failed)
		pthread_join(thread, NULL);
}

static NOINLINE void write_huge(volatile char *map, uint64_t len)
{
	for (uint64_t at = 0; at < len; at += PAGE)
		map[at] = 1; /* SITE hugetlb */
}

static void use_hugetlb(struct counts *counts)
{
	uint64_t len = counts->number * HUGE;
	void *map = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	counts->failed = map == MAP_FAILED;
	if (counts->failed)
		return;
	counts->faults = witness_faults();
	write_huge(map, len);
	counts->faults = witness_faults() - counts->faults;
	counts->after = witness_smaps(map, len, "Private_Hugetlb") * 1024 / PAGE;
}

static NOINLINE uint64_t read_library(const volatile char *data)
{
	uint64_t sum = 0;

	for (uint64_t at = 0; at < LIBPAGES * PAGE; at += PAGE)
		sum += (uint64_t)data[at]; /* SITE library */
	return sum;
}

static void use_library(struct counts *counts, const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	const char *data = library ? dlsym(library, "libpages_data") : NULL;
	uint64_t start, end, sum;

	counts->failed = !data;
	if (!data)
		return;
	witness_mapping(data, &start, &end);
	counts->number = (end - start) / PAGE;
	counts->before = witness_present((void *)start, end - start);
	counts->faults = witness_faults();
	sum = read_library(data);
	counts->faults = witness_faults() - counts->faults;
	workload_sink = (void *)sum;
	counts->after = witness_present((void *)start, end - start);
}

int main(int argc, char **argv)
{
	struct counts counts = { 0 };

	alarm(WORKLOAD_LIFE_S);
	if (argc < 3)
		return 2;
	if (strcmp(argv[1], "library"))
		counts.number = workload_number(argv[0], argv[2]);
	if (!strcmp(argv[1], "heap"))
		use_heap(&counts);
	else if (!strcmp(argv[1], "arena"))
		in_thread(use_arena, &counts);
	else if (!strcmp(argv[1], "stack"))
		use_stack(&counts);
	else if (!strcmp(argv[1], "thread-stack"))
		in_thread(use_stack, &counts);
	else if (!strcmp(argv[1], "hugetlb"))
		use_hugetlb(&counts);
	else if (!strcmp(argv[1], "library"))
		use_library(&counts, argv[2]);
	else
		return 2;
	workload_report("\"number\": %llu, \"faults\": %llu, \"before\": %llu, \"after\": %llu",
			(unsigned long long)counts.number, (unsigned long long)counts.faults,
			(unsigned long long)counts.before, (unsigned long long)counts.after);
	return counts.failed;
}
