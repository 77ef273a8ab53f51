// SPDX-License-Identifier: GPL-2.0
/*
 * abreast: two threads fault side by side, each the page next to the other's, in step.
 *
 * usage: abreast PAGES
 *   PAGES  of each thread; pages of 4096 bytes, whatever the machine would give elsewhere
 * Tells the faults of each.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "witness.h"

#define THREADS 2
#define ALIGNED (2UL << 20)

static volatile char *block;
static uint64_t pages_each;
static atomic_uint_fast64_t done[THREADS];
static uint64_t faults[THREADS];

static long thread_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static NOINLINE char *make_block(uint64_t len)
{
	return aligned_alloc(ALIGNED, len); /* SITE block */
}

static NOINLINE void write_page(uint64_t page)
{
	block[page * PAGE] = 1; /* SITE write */
}

static void *work(void *arg)
{
	size_t self = (size_t)arg;
	long before = thread_faults();

	for (uint64_t i = 0; i < pages_each; i++) {
		while (atomic_load(&done[!self]) < i)
			sched_yield();
		write_page(i * THREADS + self);
		atomic_store(&done[self], i + 1);
	}
	faults[self] = (uint64_t)(thread_faults() - before);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	uint64_t len;

	alarm(WORKLOAD_LIFE_S);
	if (argc != 2)
		return 2;
	pages_each = workload_number(argv[0], argv[1]);
	len = pages_each * THREADS * PAGE;
	block = make_block(len);
	if (!block || madvise((void *)block, len, MADV_NOHUGEPAGE))
		return 1;
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 1;
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	workload_report("\"faults\": [%llu, %llu]", (unsigned long long)faults[0],
			(unsigned long long)faults[1]);
	return 0;
}
