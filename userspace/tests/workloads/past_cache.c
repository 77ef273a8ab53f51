// SPDX-License-Identifier: GPL-2.0
/*
 * past_cache: blocks that no thread's cache holds, prime numbers of each, and many more that it does.
 * With ALONE it starts by itself, without threads, and so runs with older C libraries, too.
 *
 * usage: past_cache [--threads T]
 * Each thread does all of it; without --threads the first one alone.
 */
#ifndef ALONE
#include <pthread.h>
#endif

#include "workload.h"

#define THREADS_MAX 16
#define LARGE (100UL << 10)	 /* from the heap or an arena */
#define HUGE_BLOCK (700UL << 10) /* a mapping of its own, until one was freed */
#define MIDDLE 2000		 /* small to memtoll, and in no cache */
#define MIDDLE_BLOCKS 3001

#define MALLOCS 1009
#define HUGE_MALLOCS 211
#define CALLOCS 503
#define REALLOCS 307
#define NEW_REALLOCS 19
#define ALIGNED 101
#define POSIX 53
#define FAILING 7
#define CACHED 20011

static NOINLINE void large_malloc(void)
{
	char *volatile block = malloc(LARGE); /* SITE malloc */

	block[0] = 1;
	free(block); /* SITE free */
}

static NOINLINE void huge_malloc(void)
{
	char *volatile block = malloc(HUGE_BLOCK); /* SITE huge */

	block[0] = 1;
	free(block);
}

static NOINLINE void large_calloc(void)
{
	char *volatile block = calloc(LARGE / 8, 8); /* SITE calloc */

	free(block);
}

static NOINLINE void large_realloc(void)
{
	char *volatile block = malloc(LARGE); /* SITE before */

	block = realloc(block, 2 * LARGE); /* SITE realloc */
	free(block);
}

static NOINLINE void aligned(void)
{
	void *volatile block = aligned_alloc(4096, 25 * 4096UL); /* SITE aligned */

	free(block);
}

static NOINLINE void posix(void)
{
	void *block = NULL;

	if (posix_memalign(&block, 256, LARGE)) /* SITE posix */
		_exit(3);
	workload_sink = block;
	free(block);
}

static NOINLINE void failing(void)
{
	/* Too large for any address space; not for the compiler to see. */
	volatile size_t size = 1UL << 62;

	workload_sink = malloc(size); /* SITE failing */
	if (workload_sink)
		_exit(4);
}

static NOINLINE void middle(void)
{
	static __thread void *blocks[MIDDLE_BLOCKS];

	for (size_t i = 0; i < MIDDLE_BLOCKS; i++)
		blocks[i] = malloc(MIDDLE); /* SITE middle */
	for (size_t i = 0; i < MIDDLE_BLOCKS; i++)
		free(blocks[i]);
}

static NOINLINE void cached(void)
{
	for (size_t i = 0; i < CACHED; i++) {
		void *volatile block = malloc(24 + i % 200); /* SITE cached */

		free(block);
	}
}

static void repeat(size_t times, void (*what)(void))
{
	for (size_t i = 0; i < times; i++)
		what();
}

static void *work(void *unused)
{
	repeat(MALLOCS, large_malloc);
	repeat(HUGE_MALLOCS, huge_malloc);
	repeat(CALLOCS, large_calloc);
	repeat(REALLOCS, large_realloc);
	for (size_t i = 0; i < NEW_REALLOCS; i++) {
		workload_sink = realloc(NULL, LARGE); /* SITE new */
		free(workload_sink);
	}
	repeat(ALIGNED, aligned);
	repeat(POSIX, posix);
	repeat(FAILING, failing);
	middle();
	cached();
	return unused;
}

#ifdef ALONE
__asm__(".globl _start\n_start:\n"
	"	xor %ebp, %ebp\n"
	"	and $-16, %rsp\n"
	"	call run\n"
	"	hlt\n");

void run(void);

void run(void)
{
	work(NULL);
	workload_report("\"threads\": 0");
	_exit(0);
}
#else
int main(int argc, char **argv)
{
	size_t threads = argc == 3 ? workload_number(argv[1], argv[2]) : 0;
	pthread_t ids[THREADS_MAX];

	if (threads > THREADS_MAX)
		return 2;
	for (size_t i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, work, NULL))
			return 1;
	for (size_t i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	if (!threads)
		work(NULL);
	workload_report("\"threads\": %zu", threads);
	return 0;
}
#endif
