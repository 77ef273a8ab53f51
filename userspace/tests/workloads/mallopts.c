// SPDX-License-Identifier: GPL-2.0
/*
 * mallopts: moves glibc's thresholds, in ways that its own rules and mallopt(3) have.
 *
 * usage: mallopts keep|set [BYTES...]
 *   For each number of bytes a block is made, used and freed. With set it then waits for a line, sets
 *   top_pad, trim_threshold and mmap_threshold by mallopt, makes the heap grow, and waits for another.
 * mallinfo2(3) is the witness: how many blocks had mappings of their own.
 */
#include <malloc.h>

#include "workload.h"

#define PAD (3UL << 20)
#define TRIM (5UL << 20)
#define MAP (7UL << 20)

static NOINLINE void drop_block(char *block)
{
	free(block); /* SITE free */
}

static NOINLINE size_t mapped_blocks(uint64_t bytes)
{
	char *block = malloc(bytes); /* SITE malloc */
	size_t mapped = mallinfo2().hblks;

	if (!block)
		_exit(1);
	memset(block, 1, bytes);
	drop_block(block);
	return mapped;
}

int main(int argc, char **argv)
{
	size_t mapped = 0;
	int i;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 2)
		return 2;
	for (i = 2; i < argc; i++)
		mapped += mapped_blocks(workload_number(argv[0], argv[i]));
	workload_report("\"mapped\": %zu", mapped);
	if (strcmp(argv[1], "set"))
		return 0;
	workload_wait();
	if (!mallopt(M_TOP_PAD, PAD) || !mallopt(M_TRIM_THRESHOLD, TRIM) ||
	    !mallopt(M_MMAP_THRESHOLD, MAP))
		return 1;
	mapped = mapped_blocks(6UL << 20);
	workload_report("\"mapped\": %zu", mapped);
	workload_wait();
	return 0;
}
