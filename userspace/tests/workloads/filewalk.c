// SPDX-License-Identifier: GPL-2.0
/*
 * filewalk: goes over the pages of a file, again and again.
 *
 * usage: filewalk FILE PASSES [OPTION...]
 *   --pread    by pread of a page, not through a mapping
 *   --text     the mapping is executable, and each page begins with a function that is called
 *   --random   pages in no order, each once a pass
 *   --rare     the mapping is advised MADV_RANDOM: no read-ahead
 *   --give HOW after each pass: pageout or dontneed (madvise on the mapping), fadvise (the file)
 *   --hold N   N MiB of anonymous memory are used before each pass
 *   --wait     for a line on standard input before the first pass; --wait-again: and the second
 * Prints how many pages were used.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "workload.h"

#define PAGE 4096ULL

struct walk {
	int fd;
	uint64_t pages;
	char *map;
	int by_pread;
	int text;
	int random;
	const char *give;
	char *held;
	uint64_t held_pages;
	uint64_t used;
};

typedef int function(void);

static NOINLINE void use_page(struct walk *walk, uint64_t page)
{
	char buffer[PAGE];

	if (walk->by_pread) {
		if (pread(walk->fd, buffer, PAGE, (off_t)(page * PAGE)) != PAGE) /* SITE pread */
			_exit(4);
	} else if (walk->text) {
		((function *)(uintptr_t)(walk->map + page * PAGE))(); /* SITE call */
	} else {
		*(volatile char *)(walk->map + page * PAGE); /* SITE load */
	}
	walk->used++;
}

/* A step that is coprime to the number of pages, and far from any small fraction of it. */
static uint64_t step_of(uint64_t pages)
{
	uint64_t step = pages * 618 / 1000, a, b, rest;

	for (;; step++) {
		for (a = pages, b = step; b; a = b, b = rest)
			rest = a % b;
		if (a == 1)
			return step;
	}
}

/* Fisher and Yates; the same order in each run. */
static uint64_t *shuffled(uint64_t pages)
{
	uint64_t *order = mmap(NULL, pages * sizeof(*order), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint64_t seed = step_of(pages), i;

	for (i = 0; i < pages; i++)
		order[i] = i;
	for (i = pages; i > 1; i--) {
		uint64_t at, other = order[i - 1];

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		at = (seed >> 33) % i;
		order[i - 1] = order[at];
		order[at] = other;
	}
	return order;
}

static NOINLINE void give_back(struct walk *walk)
{
	if (!walk->give)
		return;
	if (!strcmp(walk->give, "fadvise"))
		posix_fadvise(walk->fd, 0, 0, POSIX_FADV_DONTNEED); /* SITE fadvise */
	else if (!strcmp(walk->give, "pageout"))
		madvise(walk->map, walk->pages * PAGE, MADV_PAGEOUT); /* SITE pageout */
	else
		madvise(walk->map, walk->pages * PAGE, MADV_DONTNEED); /* SITE dontneed */
}

static NOINLINE void one_pass(struct walk *walk, const uint64_t *order)
{
	uint64_t i;

	for (i = 0; i < walk->held_pages; i++)
		walk->held[i * PAGE]++;
	for (i = 0; i < walk->pages; i++)
		use_page(walk, order ? order[i] : i);
	give_back(walk);
}

static int set_up(struct walk *walk, const char *path, int rare)
{
	struct stat status;

	walk->fd = open(path, O_RDONLY);
	if (walk->fd < 0 || fstat(walk->fd, &status))
		return 1;
	walk->pages = (uint64_t)status.st_size / PAGE;
	if (walk->by_pread)
		return 0;
	walk->map = mmap(NULL, walk->pages * PAGE, PROT_READ | (walk->text ? PROT_EXEC : 0),
			 MAP_PRIVATE, walk->fd, 0);
	if (walk->map == MAP_FAILED)
		return 1;
	return rare && madvise(walk->map, walk->pages * PAGE, MADV_RANDOM);
}

int main(int argc, char **argv)
{
	struct walk walk = { 0 };
	uint64_t passes = argc > 2 ? workload_number("PASSES", argv[2]) : 0, *order;
	int i, rare = 0, waits = 0, again = 0;

	for (i = 3; i < argc; i++) {
		walk.by_pread |= !strcmp(argv[i], "--pread");
		walk.text |= !strcmp(argv[i], "--text");
		walk.random |= !strcmp(argv[i], "--random");
		rare |= !strcmp(argv[i], "--rare");
		waits |= !strcmp(argv[i], "--wait");
		again |= !strcmp(argv[i], "--wait-again");
		if (!strcmp(argv[i], "--give") && i + 1 < argc)
			walk.give = argv[++i];
		else if (!strcmp(argv[i], "--hold") && i + 1 < argc)
			walk.held_pages = workload_number("N", argv[++i]) << 8;
	}
	if (!passes || set_up(&walk, argv[1], rare))
		return 2;
	if (walk.held_pages)
		walk.held = mmap(NULL, walk.held_pages * PAGE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	order = walk.random ? shuffled(walk.pages) : NULL;
	if (waits)
		workload_wait();
	while (passes--) {
		one_pass(&walk, order);
		if (again)
			workload_wait();
		again = 0;
	}
	workload_report("\"used\": %llu, \"pages\": %llu", (unsigned long long)walk.used,
			(unsigned long long)walk.pages);
	return 0;
}
