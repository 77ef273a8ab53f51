// SPDX-License-Identifier: GPL-2.0
/*
 * sweep: writes one byte of the pages of one block, in some order.
 *
 * usage: sweep PAGES up|down|skip
 *   skip  every second page upwards, then the others
 */
#include <sys/mman.h>

#include "witness.h"

static NOINLINE char *make_block(uint64_t len)
{
	return aligned_alloc(PAGE, len); /* SITE block */
}

static NOINLINE void sweep_up(volatile char *block, uint64_t pages)
{
	for (uint64_t i = 0; i < pages; i++)
		block[i * PAGE] = 1; /* SITE up */
}

static NOINLINE void sweep_down(volatile char *block, uint64_t pages)
{
	for (uint64_t i = pages; i > 0; i--)
		block[(i - 1) * PAGE] = 1; /* SITE down */
}

static NOINLINE void sweep_skip(volatile char *block, uint64_t pages)
{
	for (uint64_t first = 0; first < 2; first++)
		for (uint64_t i = first; i < pages; i += 2)
			block[i * PAGE] = 1; /* SITE skip */
}

int main(int argc, char **argv)
{
	uint64_t pages, faults;
	char *block, order;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 3)
		return 2;
	pages = workload_number(argv[0], argv[1]);
	block = make_block(pages * PAGE);
	if (!block)
		return 1;
	/* Fails where the kernel has no huge pages. */
	madvise(block, pages * PAGE, MADV_NOHUGEPAGE);
	order = argv[2][0];
	faults = witness_faults();
	if (order == 'u')
		sweep_up(block, pages);
	else if (order == 'd')
		sweep_down(block, pages);
	else
		sweep_skip(block, pages);
	faults = witness_faults() - faults;
	workload_report("\"faults\": %llu, \"start\": %llu", (unsigned long long)faults,
			(unsigned long long)block);
	return 0;
}
