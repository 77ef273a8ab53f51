// SPDX-License-Identifier: GPL-2.0
/*
 * kept: memory that comes and goes, and that a setting of the allocator would keep.
 *
 * usage: kept SHAPE ROUNDS ...
 *   edge LIVE SIZE        a second thread makes LIVE bytes of small blocks that stay, then in each round a
 *                         block of SIZE bytes, which it writes to and frees
 *   blocks SIZE USED [thread]   each round a block of SIZE bytes, of which the first USED are written;
 *                         in a second thread
 *   varied SIZE           blocks of SIZE to 2 SIZE bytes, each of another size
 *   grow STEP MOST        each round a block grows by STEP bytes to MOST, by realloc, while small blocks
 *                         are made beside it; a larger one was freed before
 *   many SIZE COUNT       each round COUNT blocks of SIZE, written to and freed in reverse
 *   cleared SIZE COUNT    each round COUNT blocks of SIZE of calloc, written to; before the next round they are
 *                         freed in order, so that only the last one gives all of them back
 *   sparse SIZE STRIDE    a block of SIZE that stays, written to once in STRIDE bytes
 *   threads COUNT         all memory is locked, and each round starts COUNT threads and waits for them
 * KEPT_TRIM in its environment: a trim_threshold that it sets by mallopt(3).
 * Prints the faults of the rounds, in how many of them a block had a mapping of its own (mallinfo2),
 * and the pages that are resident of sparse blocks (pagemap).
 */
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include "witness.h"

#define BESIDE_MAX 4096
#define THREADS_MAX 64

struct job {
	const char *shape;
	uint64_t rounds, a, b;
	uint64_t faults, mapped, resident;
};

static NOINLINE char *make_block(uint64_t size)
{
	return malloc(size); /* SITE malloc */
}

static NOINLINE char *grow_block(char *block, uint64_t size)
{
	return realloc(block, size); /* SITE realloc */
}

static NOINLINE void drop_block(char *block)
{
	free(block); /* SITE free */
}

static NOINLINE void use(volatile char *block, uint64_t from, uint64_t to)
{
	for (uint64_t at = from; at < to; at += PAGE)
		block[at] = 1; /* SITE use */
}

static void one_block(struct job *job, uint64_t size, uint64_t used)
{
	char *block = make_block(size);

	if (!block)
		_exit(1);
	use(block, 0, used < size ? used : size);
	job->mapped += mallinfo2().hblks > 0;
	drop_block(block);
}

static void grow(uint64_t step, uint64_t most)
{
	static char *beside[BESIDE_MAX];
	char *block = NULL;
	uint64_t size, count = 0;

	for (size = 0; size < most; size += step) {
		block = grow_block(block, size + step);
		if (!block)
			_exit(1);
		use(block, size, size + step);
		if (count < BESIDE_MAX)
			beside[count++] = malloc(40000);
	}
	drop_block(block);
	while (count)
		free(beside[--count]);
}

static void many(uint64_t size, uint64_t count)
{
	static char *blocks[BESIDE_MAX];
	uint64_t i;

	for (i = 0; i < count && i < BESIDE_MAX; i++) {
		blocks[i] = make_block(size);
		if (!blocks[i])
			_exit(1);
		use(blocks[i], 0, size);
	}
	while (i)
		drop_block(blocks[--i]);
}

static void cleared(uint64_t size, uint64_t count)
{
	static char *blocks[BESIDE_MAX];
	uint64_t i;

	for (i = 0; i < BESIDE_MAX && blocks[i]; i++) {
		drop_block(blocks[i]);
		blocks[i] = NULL;
	}
	for (i = 0; i < count && i < BESIDE_MAX; i++) {
		blocks[i] = calloc(1, size);
		if (!blocks[i])
			_exit(1);
		use(blocks[i], 0, size);
	}
}

static void sparse(struct job *job, uint64_t size, uint64_t stride)
{
	char *block = make_block(size);

	if (!block)
		_exit(1);
	for (uint64_t at = 0; at < size; at += stride)
		block[at] = 1;
	job->resident += witness_present(block, size);
}

static void *wait_for_all(void *barrier)
{
	pthread_barrier_wait(barrier);
	return NULL;
}

static void start_threads(uint64_t count)
{
	static pthread_t threads[THREADS_MAX];
	pthread_barrier_t barrier;
	uint64_t i;

	pthread_barrier_init(&barrier, NULL, (unsigned int)count);
	for (i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, wait_for_all, &barrier)) /* SITE thread */
			_exit(1);
	for (i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
}

static void *run(void *context)
{
	struct job *job = context;
	uint64_t before, size;

	if (!strcmp(job->shape, "edge"))
		for (size = 0; size < job->a; size += 65000) {
			char *kept = malloc(64987);

			if (!kept)
				_exit(1);
			use(kept, 0, 64987);
		}
	before = witness_faults();
	for (uint64_t round = 0; round < job->rounds; round++) {
		if (!strcmp(job->shape, "edge"))
			one_block(job, job->b, job->b);
		else if (!strcmp(job->shape, "blocks"))
			one_block(job, job->a, job->b);
		else if (!strcmp(job->shape, "varied"))
			one_block(job, job->a + job->a * round / job->rounds, ~0UL);
		else if (!strcmp(job->shape, "threads"))
			start_threads(job->a);
		else if (!strcmp(job->shape, "many"))
			many(job->a, job->b);
		else if (!strcmp(job->shape, "cleared"))
			cleared(job->a, job->b);
		else if (!strcmp(job->shape, "sparse"))
			sparse(job, job->a, job->b);
		else
			grow(job->a, job->b);
	}
	job->faults = witness_faults() - before;
	return NULL;
}

int main(int argc, char **argv)
{
	struct job job = { 0 };
	pthread_t thread;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 4)
		return 2;
	job.shape = argv[1];
	job.rounds = workload_number(argv[0], argv[2]);
	job.a = workload_number(argv[0], argv[3]);
	job.b = argc > 4 ? workload_number(argv[0], argv[4]) : 0;
	if (getenv("KEPT_TRIM"))
		mallopt(M_TRIM_THRESHOLD, atoi(getenv("KEPT_TRIM")));
	if (!strcmp(job.shape, "edge"))
		free(malloc(4 * job.b)); /* raises mmap_threshold */
	else if (!strcmp(job.shape, "grow"))
		free(malloc(job.b + 1000003));
	else if (!strcmp(job.shape, "threads") &&
		 (job.a > THREADS_MAX || mlockall(MCL_CURRENT | MCL_FUTURE)))
		return 1;
	if (!strcmp(job.shape, "edge") || argc > 5) {
		if (pthread_create(&thread, NULL, run, &job) || pthread_join(thread, NULL))
			return 1;
	} else {
		run(&job);
	}
	workload_report("\"rounds\": %llu, \"faults\": %llu, \"mapped\": %llu, \"resident\": %llu",
			(unsigned long long)job.rounds, (unsigned long long)job.faults,
			(unsigned long long)job.mapped, (unsigned long long)job.resident);
	return 0;
}
