// SPDX-License-Identifier: GPL-2.0
/*
 * crowd: many threads, all alive at once, each of which allocates and touches.
 *
 * usage: crowd [--wait] THREADS BLOCKS [PROGRAM ARGUMENT...]
 * Every thread makes BLOCKS blocks of BLOCK bytes, touches PAGES pages of a mapping of its own and
 * waits for the others. Then one that is not the process's first becomes PROGRAM, if there is one,
 * with what it did last still on its way.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "workload.h"

#define BLOCK 1000
#define PAGES 13
#define PAGE 4096
#define STACK (64 * 1024)

static pthread_barrier_t barrier;
static uint64_t threads, blocks;
static char **command;

static NOINLINE void *crowd_malloc(void)
{
	void *volatile block = malloc(BLOCK); /* SITE malloc */

	return block;
}

static NOINLINE void touch(volatile char *pages)
{
	for (int i = 0; i < PAGES; i++)
		pages[i * PAGE] = 1;
}

static char *map_pages(void)
{
	char *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	if (pages == MAP_FAILED || madvise(pages, PAGES * PAGE, MADV_NOHUGEPAGE))
		_exit(1);
	return pages;
}

static void *work(void *argument)
{
	char *pages = map_pages();

	for (uint64_t i = 0; i < blocks; i++)
		free(crowd_malloc());
	pthread_barrier_wait(&barrier);
	touch(pages);
	if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD && *command) {
		touch(map_pages());
		execv(command[0], command);
		_exit(127);
	}
	return argument;
}

int main(int argc, char **argv)
{
	pthread_attr_t attributes;
	pthread_t *started;

	alarm(WORKLOAD_LIFE_S);
	if (argc > 1 && !strcmp(argv[1], "--wait")) {
		workload_wait();
		alarm(WORKLOAD_LIFE_S);
		argv++;
		argc--;
	}
	if (argc < 3)
		return 2;
	threads = workload_number(argv[0], argv[1]);
	blocks = workload_number(argv[0], argv[2]);
	command = argv + 3;
	started = calloc(threads, sizeof(*started));
	if (!started || pthread_barrier_init(&barrier, NULL, threads) ||
	    pthread_attr_init(&attributes) || pthread_attr_setstacksize(&attributes, STACK))
		return 1;
	workload_report("\"malloc\": %llu, \"pages\": %llu", (unsigned long long)(threads * blocks),
			(unsigned long long)((threads + !!*command) * PAGES));
	for (uint64_t i = 0; i < threads; i++)
		if (pthread_create(&started[i], &attributes, work, NULL))
			return 1;
	for (uint64_t i = 0; i < threads; i++)
		pthread_join(started[i], NULL);
	return *command != NULL; /* exec failed */
}
