// SPDX-License-Identifier: GPL-2.0
/*
 * paths: one instruction, at one depth of the stack, touches pages, or calls calloc or madvise, for
 * four chains of callers that differ in the middle and far up, and for two that differ only in
 * where a frame begins, in an order that nobody could guess. No two pages lie side by side.
 *
 * usage: paths touch|calloc|madvise
 */
#include <alloca.h>
#include <sys/mman.h>

#include "../workload.h"

#define PAGE 4096UL

static volatile int back;
static char *volatile scratch;

/* Large enough for its stack to be asked each time, small enough for the heap. */
#define BLOCK 100000UL

static char what;

static NOINLINE void touch(char *page)
{
	switch (what) {
	case 't':
		*(volatile char *)page = 1;
		break;
	case 'c':
		scratch = calloc(1, BLOCK);
		free(scratch);
		break;
	default:
		madvise(page, PAGE, MADV_NOHUGEPAGE);
	}
	back++;
}

static NOINLINE void low_one(char *page)
{
	touch(page);
	back += 2;
}

static NOINLINE void low_two(char *page)
{
	touch(page);
	back += 3;
}

/* Its frame is known by rbp only. */
static NOINLINE void wide(char *page, int low, size_t bytes)
{
	scratch = alloca(bytes);
	if (low)
		low_two(page);
	else
		low_one(page);
	back += 4;
}

static NOINLINE void high_one(char *page, int low)
{
	wide(page, low, 64);
	back += 5;
}

static NOINLINE void high_two(char *page, int low)
{
	wide(page, low, 64);
	back += 6;
}

/* Has rbp for itself, always the same: its caller's is where it has saved it. */
static NOINLINE void saver(char *page)
{
	asm volatile("mov $1, %%ebp" : : : "rbp");
	touch(page);
	back += 7;
}

static NOINLINE void moved(char *page, size_t bytes)
{
	scratch = alloca(bytes);
	saver(page);
	back += 8;
}

/* Both together always take as much of the stack. */
static NOINLINE void narrow(char *page)
{
	scratch = alloca(64);
	moved(page, 192);
	back += 9;
}

static NOINLINE void broad(char *page)
{
	scratch = alloca(192);
	moved(page, 64);
	back += 10;
}

static void (*const volatile either[2])(char *page) = { narrow, broad };

static void go(unsigned int path, char *page)
{
	switch (path) {
	case 0:
	case 1:
		high_one(page, path);
		break;
	case 2:
	case 3:
		high_two(page, path - 2);
		break;
	default:
		either[path - 4](page);
	}
}

#define PATHS 6

int main(int argc, char **argv)
{
	unsigned int left[PATHS] = { 211, 307, 401, 503, 601, 701 }, total = 0, i;
	unsigned long number = 7;
	char *region;

	alarm(WORKLOAD_LIFE_S);
	if (argc != 2)
		return 2;
	what = *argv[1];
	for (i = 0; i < PATHS; i++)
		total += left[i];
	region = mmap(NULL, 2 * total * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (region == MAP_FAILED || madvise(region, 2 * total * PAGE, MADV_NOHUGEPAGE))
		return 2;
	for (i = 0; i < total; i++) {
		unsigned int path;

		number = number * 6364136223846793005UL + 1442695040888963407UL;
		for (path = (number >> 32) % PATHS; !left[path]; path = (path + 1) % PATHS)
			;
		left[path]--;
		go(path, region + 2 * i * PAGE);
	}
	workload_report("\"high_one low_one\": 211, \"high_one low_two\": 307,"
			" \"high_two low_one\": 401, \"high_two low_two\": 503,"
			" \"narrow saver\": 601, \"broad saver\": 701");
	return 0;
}
