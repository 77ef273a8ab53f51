// SPDX-License-Identifier: GPL-2.0
/*
 * grower: a block that is made larger a little at a time, and one that grows by a factor.
 *
 * usage: grower ROUNDS STEP SIZE      blocks of SIZE bytes, STEP more at each call
 *        grower ROUNDS factor SIZE    half as much again at each call
 *
 * Another block is made behind it each time, so that it seldom can grow where it is. Says how often
 * it came to another place, and how much was in it then, of blocks of 64 KiB and more.
 */
#include "workload.h"

#define FOLLOWED 65536
#define BESIDE 8192

static uint64_t grown, moved, moved_bytes;

static NOINLINE char *grow(char *block, uint64_t size)
{
	char *volatile larger = realloc(block, size); /* SITE grow */

	return larger;
}

static NOINLINE void build(uint64_t step, uint64_t size)
{
	static void *beside[BESIDE];
	uint64_t has = 0, count = 0;
	char *block = NULL;

	while (has < size) {
		uint64_t more = step ? step : has / 2 + 4099;
		char *before = block;

		block = grow(block, has + more);
		if (has >= FOLLOWED) {
			grown++;
			if (block != before) {
				moved++;
				moved_bytes += has;
			}
		}
		memset(block + has, 'x', more);
		has += more;
		if (count < BESIDE)
			beside[count++] = malloc(2003);
	}
	while (count)
		free(beside[--count]);
	free(block);
}

int main(int argc, char **argv)
{
	uint64_t rounds, step, size;

	alarm(WORKLOAD_LIFE_S);
	if (argc != 4)
		return 2;
	rounds = workload_number(argv[0], argv[1]);
	step = strcmp(argv[2], "factor") ? workload_number(argv[0], argv[2]) : 0;
	size = workload_number(argv[0], argv[3]);
	for (uint64_t i = 0; i < rounds; i++)
		build(step, size);
	workload_report("\"grown\": %llu, \"moved\": %llu, \"moved_bytes\": %llu",
			(unsigned long long)grown, (unsigned long long)moved,
			(unsigned long long)moved_bytes);
	return 0;
}
