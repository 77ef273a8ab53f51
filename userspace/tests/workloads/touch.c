// SPDX-License-Identifier: GPL-2.0
/*
 * touch: one large block, its pages read and written in phases.
 *
 * usage: touch PAGES huge|small PHASES [BOUNDARY]
 *   huge    MADV_HUGEPAGE: huge pages, or folios of several pages, as the machine is set
 *   small   MADV_NOHUGEPAGE
 *   PHASES  letters: r reads a byte of every page, w writes one
 *   BOUNDARY  where the block begins: at a multiple of so many bytes, 2 MiB by default
 * Tells the faults that each phase took.
 */
#include <sys/mman.h>

#include "witness.h"

#define HUGE (2UL << 20)
#define PHASES_MAX 4

static NOINLINE char *make_block(uint64_t boundary, uint64_t len)
{
	return aligned_alloc(boundary, len); /* SITE block */
}

static NOINLINE uint64_t read_pages(const volatile char *block, uint64_t len)
{
	uint64_t sum = 0;

	for (uint64_t at = 0; at < len; at += PAGE)
		sum += (uint64_t)block[at]; /* SITE read */
	return sum;
}

static NOINLINE void write_pages(volatile char *block, uint64_t len)
{
	for (uint64_t at = 0; at < len; at += PAGE)
		block[at] = 1; /* SITE write */
}

int main(int argc, char **argv)
{
	uint64_t faults[PHASES_MAX] = { 0 }, len, sum = 0;
	size_t phases, i;
	char *block;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 4)
		return 2;
	len = workload_number(argv[0], argv[1]) * PAGE;
	phases = strlen(argv[3]);
	if (phases > PHASES_MAX)
		return 2;
	block = make_block(argc > 4 ? workload_number(argv[0], argv[4]) : HUGE, len);
	/* Fails where the kernel has no huge pages: then there is nothing to switch off. */
	if (!block ||
	    (madvise(block, len, strcmp(argv[2], "huge") ? MADV_NOHUGEPAGE : MADV_HUGEPAGE) &&
	     !strcmp(argv[2], "huge")))
		return 1;
	for (i = 0; i < phases; i++) {
		uint64_t before = witness_faults();

		if (argv[3][i] == 'r')
			sum += read_pages(block, len);
		else
			write_pages(block, len);
		faults[i] = witness_faults() - before;
	}
	workload_report("\"faults\": [%llu, %llu, %llu, %llu], \"present\": %llu, "
			"\"anon_huge_kb\": %llu, \"sum\": %llu",
			(unsigned long long)faults[0], (unsigned long long)faults[1],
			(unsigned long long)faults[2], (unsigned long long)faults[3],
			(unsigned long long)witness_present(block, len),
			(unsigned long long)witness_smaps(block, len, "AnonHugePages"),
			(unsigned long long)sum);
	return 0;
}
