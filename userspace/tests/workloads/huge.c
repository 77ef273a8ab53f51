// SPDX-License-Identifier: GPL-2.0
/*
 * huge: memory in huge pages, by its own wish, all of each used or one byte. It is kept for a
 * while, given back and got again, and kept for longer the last time. Its own clock tells the least
 * and the most that the use of a page took.
 *
 * usage: huge HUGE_PAGES ROUNDS sparse|dense
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <time.h>

#include "witness.h"

#define HUGE (2UL << 20)

static int64_t least_ns = INT64_MAX, most_ns;

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static NOINLINE void use(char *memory, uint64_t pages, int dense)
{
	for (uint64_t i = 0; i < pages; i++) {
		int64_t took_ns = cpu_ns();

		memset(memory + i * HUGE, 5, dense ? HUGE : 1); /* SITE use */
		took_ns = cpu_ns() - took_ns;
		least_ns = took_ns < least_ns ? took_ns : least_ns;
		most_ns = took_ns > most_ns ? took_ns : most_ns;
	}
}

int main(int argc, char **argv)
{
	const struct timespec pause = { .tv_nsec = 130000000 };
	uint64_t pages, rounds, before, faults = 0;
	char *range, *memory;

	alarm(WORKLOAD_LIFE_S);
	if (argc != 4)
		return 2;
	pages = workload_number("HUGE_PAGES", argv[1]);
	rounds = workload_number("ROUNDS", argv[2]);
	range = mmap(NULL, (pages + 1) * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	if (range == MAP_FAILED)
		return 1;
	memory = (char *)(((uint64_t)range + HUGE - 1) & ~(HUGE - 1));
	madvise(memory, pages * HUGE, MADV_HUGEPAGE);
	while (rounds--) {
		before = witness_faults();
		use(memory, pages, argv[3][0] == 'd');
		faults += witness_faults() - before;
		for (uint64_t i = rounds ? 1 : 12; i; i--)
			nanosleep(&pause, NULL);
		madvise(memory, pages * HUGE, MADV_DONTNEED);
	}
	workload_report("\"faults\": %llu, \"least_ns\": %lld, \"most_ns\": %lld",
			(unsigned long long)faults, (long long)least_ns, (long long)most_ns);
	return 0;
}
