// SPDX-License-Identifier: GPL-2.0
/*
 * raises: what moves glibc's thresholds and what does not, step by step.
 *
 * usage: raises STEP...
 *   one:BYTES           a block is made, used and freed at one place
 *   two:BYTES           the same at another
 *   thread:STEP         one of these two in a thread of its own
 *   both:BYTES:BYTES    two threads free at the same time, a block at each place
 *   grown:BYTES:BYTES   a block that realloc makes larger or smaller, freed at the first place
 *   copied:BYTES:BYTES  one that mremap refuses, so that realloc copies it, freed by drop
 *   nothing:BYTES       a block that realloc to no bytes frees
 *   aligned:AT:BYTES    a block of posix_memalign, freed at the first place
 *   kept:BYTES          a block, freed by
 *   drop                at the second place
 *   map:BYTES           mallopt(M_MMAP_THRESHOLD)
 *   trim:BYTES          mallopt(M_TRIM_THRESHOLD)
 *   rounds:N:BYTES:COUNT  N times COUNT blocks are made, used and freed in reverse
 *   wait                for a line
 *   ask                 finds mmap_threshold: the smallest chunk that gets a mapping, by bisection
 * Says of each free but the rounds' its place, the size of the chunk and whether that had a mapping
 * of its own, by its header; of the rounds how many had (mallinfo2), and how often the break fell.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "witness.h"

#define COUNT_MAX 4096
#define CHUNK 16UL
#define CHUNK_FLAGS 7UL
#define CHUNK_MAPPED 2UL
#define ASK_MOST (1UL << 26)

struct free_at_once {
	pthread_barrier_t *barrier;
	char *block;
	void (*drop)(char *);
};

static char *kept;
static char freed[700];
static uint64_t numbers[3], mapped, falls, threshold;

static void note(const char *place, const char *block)
{
	uint64_t header = ((const uint64_t *)block)[-1];
	size_t len = strlen(freed);

	snprintf(freed + len, sizeof(freed) - len, "%s[\"%s\", %llu, %s]", len ? ", " : "", place,
		 (unsigned long long)(header & ~CHUNK_FLAGS),
		 header & CHUNK_MAPPED ? "true" : "false");
}

static NOINLINE void drop_one(char *block)
{
	free(block); /* SITE one */
}

static NOINLINE void drop_two(char *block)
{
	free(block); /* SITE two */
}

static NOINLINE void drop_by_realloc(char *block)
{
	workload_sink = realloc(block, 0); /* SITE nothing */
}

static void end_one(char *block)
{
	note("one", block);
	drop_one(block);
}

static void end_two(char *block)
{
	note("two", block);
	drop_two(block);
}

static NOINLINE void use(volatile char *block, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += PAGE)
		block[at] = 1;
}

static char *used(char *block, uint64_t size)
{
	if (!block)
		_exit(1);
	use(block, size);
	return block;
}

static char *made(uint64_t size)
{
	return used(malloc(size), size);
}

static void *free_it(void *context)
{
	const struct free_at_once *job = context;

	pthread_barrier_wait(job->barrier);
	job->drop(job->block);
	return NULL;
}

static void free_both(uint64_t first, uint64_t second)
{
	pthread_barrier_t barrier;
	struct free_at_once jobs[] = { { &barrier, made(first), drop_one },
				       { &barrier, made(second), drop_two } };
	pthread_t threads[2];

	note("one", jobs[0].block);
	note("two", jobs[1].block);
	pthread_barrier_init(&barrier, NULL, 2);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, free_it, &jobs[i]))
			_exit(1);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
}

/* A second area within the block, by a flag: mremap(2) takes one only. */
static NOINLINE char *copied(uint64_t from, uint64_t to)
{
	char *block = made(from);
	char *page = (char *)(((uint64_t)block + 2 * PAGE) & -PAGE);

	if (madvise(page, PAGE, MADV_DONTDUMP))
		_exit(1);
	return used(realloc(block, to), to);
}

static void run_rounds(uint64_t rounds, uint64_t size, uint64_t count)
{
	static char *blocks[COUNT_MAX];

	if (count > COUNT_MAX)
		_exit(2);
	for (uint64_t round = 0; round < rounds; round++) {
		for (uint64_t i = 0; i < count; i++)
			blocks[i] = made(size);
		mapped += mallinfo2().hblks;
		for (uint64_t i = count; i--;) {
			char *high = sbrk(0);

			drop_one(blocks[i]);
			falls += (char *)sbrk(0) < high;
		}
	}
}

/* What is tried stays: a block that is freed would move it. Nor may what is free already serve it. */
static void ask(void)
{
	uint64_t low = CHUNK, high = ASK_MOST;

	while (low < high) {
		uint64_t chunk = (low + high) / 2 & -CHUNK;
		size_t before;

		while (mallinfo2().fordblks >= chunk && chunk > 2 * PAGE)
			workload_sink = malloc(PAGE);
		before = mallinfo2().hblks;
		workload_sink = malloc(chunk - sizeof(uint64_t));
		if (mallinfo2().hblks > before)
			high = chunk;
		else
			low = chunk + CHUNK;
	}
	threshold = low;
}

static void *run_step(void *text)
{
	const char *step = text;

	if (!strncmp(step, "one:", 4)) {
		end_one(made(numbers[0]));
	} else if (!strncmp(step, "two:", 4)) {
		end_two(made(numbers[0]));
	} else if (!strncmp(step, "both:", 5)) {
		free_both(numbers[0], numbers[1]);
	} else if (!strncmp(step, "grown:", 6)) {
		end_one(used(realloc(made(numbers[0]), numbers[1]), numbers[1]));
	} else if (!strncmp(step, "copied:", 7)) {
		kept = copied(numbers[0], numbers[1]);
	} else if (!strncmp(step, "nothing:", 8)) {
		kept = made(numbers[0]);
		note("nothing", kept);
		drop_by_realloc(kept);
	} else if (!strncmp(step, "aligned:", 8)) {
		void *block;

		if (posix_memalign(&block, numbers[0], numbers[1]))
			_exit(1);
		end_one(used(block, numbers[1]));
	} else if (!strncmp(step, "kept:", 5)) {
		kept = made(numbers[0]);
	} else if (!strcmp(step, "drop")) {
		end_two(kept);
	} else if (!strncmp(step, "map:", 4)) {
		mallopt(M_MMAP_THRESHOLD, (int)numbers[0]);
	} else if (!strncmp(step, "trim:", 5)) {
		mallopt(M_TRIM_THRESHOLD, (int)numbers[0]);
	} else if (!strncmp(step, "rounds:", 7)) {
		run_rounds(numbers[0], numbers[1], numbers[2]);
	} else if (!strcmp(step, "ask")) {
		ask();
	} else if (!strcmp(step, "wait")) {
		workload_wait();
	} else {
		_exit(2);
	}
	return NULL;
}

static void read_numbers(const char *name, char *step)
{
	char *part, *rest = strchr(step, ':');

	for (int i = 0; i < 3 && rest; i++) {
		char number[32];

		part = rest + 1;
		rest = strchr(part, ':');
		snprintf(number, sizeof(number), "%.*s",
			 rest ? (int)(rest - part) : (int)strlen(part), part);
		numbers[i] = workload_number(name, number);
	}
}

int main(int argc, char **argv)
{
	alarm(WORKLOAD_LIFE_S);
	for (int i = 1; i < argc; i++) {
		char *step = argv[i];
		bool threaded = !strncmp(step, "thread:", 7);
		pthread_t thread;

		step += threaded ? 7 : 0;
		read_numbers(argv[0], step);
		if (!threaded)
			run_step(step);
		else if (pthread_create(&thread, NULL, run_step, step) ||
			 pthread_join(thread, NULL))
			return 1;
	}
	workload_report(
		"\"freed\": [%s], \"mapped\": %llu, \"falls\": %llu, \"mmap_threshold\": %llu",
		freed, (unsigned long long)mapped, (unsigned long long)falls,
		(unsigned long long)threshold);
	return 0;
}
