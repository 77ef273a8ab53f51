// SPDX-License-Identifier: GPL-2.0
/*
 * storms: memory that is given back to the kernel and got again at once.
 *
 * usage: storms SHAPE ROUNDS [COUNT SIZE]
 *   blocks   a round makes COUNT blocks of SIZE bytes, writes one byte of every page of them, and frees
 *            them in reverse
 *   calloc   the same with calloc, and nothing is written
 *   once     makes and uses the blocks, frees them, and computes for the rest of the rounds
 *   fresh    makes and uses the blocks, one at a time, and never frees them: first touches only
 *   advise   one mapping of COUNT * SIZE bytes: written, which is timed (use_cpu_ns), and dropped by
 *            madvise MADV_DONTNEED
 *   mapping  the same by mmap and munmap of its own
 * Prints what getrusage has of the rounds, and how often the break rose and fell.
 */
#include <sys/mman.h>

#include "witness.h"

#define COUNT_MAX 4096

static char *blocks[COUNT_MAX];
static uint64_t rises, falls, fallen_bytes, work, use_cpu_ns;
static char *last_break;

/* The break as libc knows it: no system call. */
static void watch_break(void)
{
	char *now = sbrk(0);

	rises += now > last_break;
	if (now < last_break) {
		falls++;
		fallen_bytes += (uint64_t)(last_break - now);
	}
	last_break = now;
}

static NOINLINE char *make_block(uint64_t size)
{
	return malloc(size); /* SITE malloc */
}

static NOINLINE char *make_clear(uint64_t size)
{
	return calloc(size, 1); /* SITE calloc */
}

static NOINLINE void drop_block(char *block)
{
	free(block); /* SITE free */
}

static NOINLINE void use(volatile char *block, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += PAGE)
		block[at] = 1; /* SITE use */
}

static NOINLINE void drop_pages(char *block, uint64_t size)
{
	if (madvise(block, size, MADV_DONTNEED)) /* SITE madvise */
		_exit(1);
}

static NOINLINE char *map_block(uint64_t size)
{
	char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, /* SITE mmap */
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED)
		_exit(1);
	return block;
}

static NOINLINE void unmap_block(char *block, uint64_t size)
{
	munmap(block, size); /* SITE munmap */
}

static void make_blocks(uint64_t count, uint64_t size, int clear)
{
	for (uint64_t i = 0; i < count; i++) {
		blocks[i] = clear ? make_clear(size) : make_block(size);
		if (!blocks[i])
			_exit(1);
		watch_break();
		if (!clear)
			use(blocks[i], size);
	}
}

static void drop_blocks(uint64_t count)
{
	while (count--) {
		drop_block(blocks[count]);
		watch_break();
	}
}

static NOINLINE void compute(void)
{
	for (uint64_t i = 0; i < 20000000; i++)
		work = work * 6364136223846793005ULL + i; /* SITE compute */
}

static void one_round(const char *shape, uint64_t round, uint64_t count, uint64_t size)
{
	static char *mapping;
	uint64_t start_ns;

	if (!strcmp(shape, "blocks") || !strcmp(shape, "calloc")) {
		make_blocks(count, size, *shape == 'c');
		drop_blocks(count);
	} else if (!strcmp(shape, "once")) {
		if (!round) {
			make_blocks(count, size, 0);
			drop_blocks(count);
		}
		compute();
	} else if (!strcmp(shape, "fresh")) {
		make_blocks(count, size, 0);
	} else if (!strcmp(shape, "advise")) {
		if (!mapping)
			mapping = map_block(count * size);
		start_ns = workload_clock(CLOCK_THREAD_CPUTIME_ID);
		use(mapping, count * size);
		use_cpu_ns += workload_clock(CLOCK_THREAD_CPUTIME_ID) - start_ns;
		drop_pages(mapping, count * size);
	} else if (!strcmp(shape, "mapping")) {
		mapping = map_block(count * size);
		use(mapping, count * size);
		unmap_block(mapping, count * size);
	} else {
		_exit(2);
	}
}

int main(int argc, char **argv)
{
	uint64_t rounds, count = 64, size = 100000, before, start_ns;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 3)
		return 2;
	rounds = workload_number(argv[0], argv[2]);
	if (argc > 3)
		count = workload_number(argv[0], argv[3]);
	if (argc > 4)
		size = workload_number(argv[0], argv[4]);
	if (count > COUNT_MAX)
		return 2;
	last_break = sbrk(0);
	before = witness_faults();
	start_ns = workload_clock(CLOCK_PROCESS_CPUTIME_ID);
	for (uint64_t round = 0; round < rounds; round++)
		one_round(argv[1], round, count, size);
	workload_report(
		"\"rounds\": %llu, \"faults\": %llu, \"rises\": %llu, \"falls\": %llu, "
		"\"fallen_bytes\": %llu, \"rounds_cpu_ns\": %llu, \"use_cpu_ns\": %llu, \"work\": %llu",
		(unsigned long long)rounds, (unsigned long long)(witness_faults() - before),
		(unsigned long long)rises, (unsigned long long)falls,
		(unsigned long long)fallen_bytes,
		(unsigned long long)(workload_clock(CLOCK_PROCESS_CPUTIME_ID) - start_ns),
		(unsigned long long)use_cpu_ns, (unsigned long long)work);
	return 0;
}
