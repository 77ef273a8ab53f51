// SPDX-License-Identifier: GPL-2.0
/*
 * inorder: one thread writes pages in order, while another changes what it meets.
 *
 * usage: inorder PAGES
 *   PAGES  of one mapping; pages of 4096 bytes, whatever the machine would give elsewhere
 * Three passes: over pages of which the other thread has each time touched the next one, every
 * MEDDLED of them, and dropped all behind, once; over what was read before, every SEEN pages; and
 * over a mapping whose end is moved up, every GROWN pages. Tells the faults of each line.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "witness.h"

#define MEDDLED 101
#define SEEN 89
#define GROWN 83

static volatile char *block;
static uint64_t pages;
static atomic_uint_fast64_t asked, answered;

static NOINLINE void meddle_page(uint64_t page)
{
	block[page * PAGE] = 2; /* SITE meddle */
}

static NOINLINE void write_page(uint64_t page)
{
	block[page * PAGE] = 1; /* SITE write */
}

static NOINLINE char look_page(uint64_t page)
{
	return block[page * PAGE]; /* SITE look */
}

static NOINLINE void rewrite_page(uint64_t page)
{
	block[page * PAGE] = 3; /* SITE rewrite */
}

static NOINLINE void grow_page(uint64_t page)
{
	block[page * PAGE] = 4; /* SITE grow */
}

/* asked: the page to touch, or past the last one to drop all; answered: how often that was done. */
static void *meddle(void *arg)
{
	(void)arg;
	for (uint64_t done = 0;;) {
		uint64_t page = atomic_load(&asked);

		if (page == UINT64_MAX)
			return NULL;
		if (!page) {
			sched_yield();
			continue;
		}
		if (page < pages)
			meddle_page(page);
		else if (madvise((void *)block, pages * PAGE, MADV_DONTNEED))
			_exit(1);
		atomic_store(&asked, 0);
		atomic_store(&answered, ++done);
	}
}

static void ask(uint64_t page)
{
	uint64_t before = atomic_load(&answered);

	atomic_store(&asked, page);
	while (atomic_load(&answered) == before)
		sched_yield();
}

int main(int argc, char **argv)
{
	uint64_t meddled = 0, seen = 0, written, rewritten, grown, i;
	pthread_t thread;

	alarm(WORKLOAD_LIFE_S);
	if (argc != 2)
		return 2;
	pages = workload_number(argv[0], argv[1]);
	block = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (block == MAP_FAILED || madvise((void *)block, pages * PAGE, MADV_NOHUGEPAGE) ||
	    pthread_create(&thread, NULL, meddle, NULL))
		return 1;

	written = witness_faults();
	for (i = 0; i < pages; i++) {
		if (i % MEDDLED == MEDDLED / 2 && i + 1 < pages) {
			ask(i + 1);
			meddled++;
		}
		if (i == pages / 2)
			ask(pages);
		write_page(i);
	}
	written = witness_faults() - written;

	atomic_store(&asked, UINT64_MAX);
	pthread_join(thread, NULL);
	madvise((void *)block, pages * PAGE, MADV_DONTNEED);
	for (i = 0; i < pages; i += SEEN)
		seen += !look_page(i);
	rewritten = witness_faults();
	for (i = 0; i < pages; i++)
		rewrite_page(i);
	rewritten = witness_faults() - rewritten;

	/* The memory beyond what is open is there, but not to be touched. */
	if (madvise((void *)block, pages * PAGE, MADV_DONTNEED) ||
	    mprotect((void *)block, pages * PAGE, PROT_NONE))
		return 1;
	grown = witness_faults();
	for (i = 0; i < pages; i++) {
		if (i % GROWN == 0) {
			uint64_t len = (pages - i < GROWN ? pages - i : GROWN) * PAGE;

			if (mprotect((void *)(block + i * PAGE), len, PROT_READ | PROT_WRITE))
				return 1;
		}
		grow_page(i);
	}
	grown = witness_faults() - grown;
	workload_report("\"written\": %llu, \"meddled\": %llu, \"seen\": %llu, \"rewritten\": %llu,"
			" \"grown\": %llu",
			(unsigned long long)written, (unsigned long long)meddled,
			(unsigned long long)seen, (unsigned long long)rewritten,
			(unsigned long long)grown);
	return 0;
}
