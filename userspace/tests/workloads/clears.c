// SPDX-License-Identifier: GPL-2.0
/*
 * clears: a large block from calloc and many small ones, again and again, all from the heap: so many
 * calls that calloc itself is watched in windows only, while its memset is most of the time.
 *
 * With a fourth argument calloc is reached by a jump, as Rust's __rust_alloc_zeroed does it.
 *
 * usage: clears SECONDS BYTES SMALL [jump]
 * Reports how many large calls there were and what CPU time they took by its own clock.
 */
#include <malloc.h>

#include "workload.h"

#define SMALL_BYTES 600

static uint64_t calls, calloc_ns;

static NOINLINE void *make(size_t bytes)
{
	void *volatile block = calloc(1, bytes); /* SITE calloc */

	return block;
}

/* What memset returns to is this function's caller, and no call of calloc is there. */
static NOINLINE __attribute__((optimize("O2"))) void *zeroed(size_t bytes)
{
	if (bytes > 1UL << 40)
		return NULL;
	return calloc(1, bytes);
}

static NOINLINE void *make_zeroed(size_t bytes)
{
	void *volatile block = zeroed(bytes); /* SITE zeroed */

	return block;
}

static NOINLINE void unmake(void *block)
{
	free(block);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	uint64_t end_ns, start_ns, bytes, small, i;
	void *(*maker)(size_t) = argc == 5 ? make_zeroed : make;
	void *block;

	alarm(WORKLOAD_LIFE_S);
	if (argc != 4 && argc != 5)
		return 2;
	end_ns = workload_clock(CLOCK_MONOTONIC) +
		 workload_number("SECONDS", argv[1]) * 1000000000ULL;
	bytes = workload_number("BYTES", argv[2]);
	small = workload_number("SMALL", argv[3]);
	if (!mallopt(M_MMAP_THRESHOLD, 1 << 30) || !mallopt(M_TRIM_THRESHOLD, 1 << 30))
		return 1;
	while (workload_clock(CLOCK_MONOTONIC) < end_ns) {
		start_ns = workload_clock(CLOCK_THREAD_CPUTIME_ID);
		block = maker(bytes);
		calloc_ns += workload_clock(CLOCK_THREAD_CPUTIME_ID) - start_ns;
		unmake(block);
		calls++;
		for (i = 0; i < small; i++)
			unmake(maker(SMALL_BYTES));
	}
	workload_report("\"calls\": %llu, \"calloc_ns\": %llu", (unsigned long long)calls,
			(unsigned long long)calloc_ns);
	return 0;
}
