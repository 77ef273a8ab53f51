// SPDX-License-Identifier: GPL-2.0
/*
 * beside: large blocks with many small callocs beside them, so that the budget lets calloc be watched
 * a part of the time only.
 *
 * usage: beside MS ROUNDS SMALL THREADS KIND:BYTES:USED...
 * In each round a thread makes the blocks, writes to each page of the first USED bytes of each, makes
 * SMALL small callocs, and frees the blocks in reverse. KIND: a and b are two places that call calloc, m
 * one that calls malloc. With ROUNDS 0 until the program has had MS of CPU time.
 * Prints the rounds, faults and CPU time of all threads, how many blocks had mappings of their own, and
 * the bytes that were there in a later round's callocs before they were used: calloc has cleared them.
 */
#include <pthread.h>
#include <sys/prctl.h>

#include "witness.h"

#define SMALL_BYTES 600
#define KINDS_MAX 8
#define THREADS_MAX 4
#define SETTLED 5 /* the round that is looked at: glibc's thresholds move before */

static struct kind {
	char place;
	uint64_t bytes, used;
} kinds[KINDS_MAX];

static struct thread {
	uint64_t rounds, mapped, cleared;
} threads[THREADS_MAX];

static int kinds_count;
static uint64_t rounds, small, end_ns;

static NOINLINE char *make_a(uint64_t bytes)
{
	char *volatile block = calloc(bytes, 1); /* SITE a */

	return block;
}

static NOINLINE char *make_b(uint64_t bytes)
{
	char *volatile block = calloc(bytes, 1); /* SITE b */

	return block;
}

static NOINLINE char *make_m(uint64_t bytes)
{
	char *volatile block = malloc(bytes); /* SITE m */

	return block;
}

static NOINLINE char *make_small(void)
{
	char *volatile block = calloc(1, SMALL_BYTES); /* SITE small */

	return block;
}

static NOINLINE void drop(char *block)
{
	free(block); /* SITE free */
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void use(volatile char *block, uint64_t used)
{
	for (uint64_t at = 0; at < used; at += PAGE)
		block[at] = 1; /* SITE use */
}

/* The size field of a chunk of glibc's says so. */
static int is_mapped(const char *block)
{
	return (((const size_t *)block)[-1] & 2) != 0;
}

static void one_round(struct thread *thread)
{
	char *blocks[KINDS_MAX];
	int i;

	for (i = 0; i < kinds_count; i++) {
		const struct kind *kind = &kinds[i];

		blocks[i] = kind->place == 'a' ? make_a(kind->bytes) :
			    kind->place == 'b' ? make_b(kind->bytes) :
						 make_m(kind->bytes);
		if (!blocks[i])
			_exit(1);
		thread->mapped += is_mapped(blocks[i]);
		if (thread->rounds == SETTLED && kind->place != 'm')
			thread->cleared += PAGE * witness_present(blocks[i], kind->bytes);
		use(blocks[i], kind->used);
	}
	for (uint64_t more = 0; more < small; more++)
		drop(make_small());
	while (i)
		drop(blocks[--i]);
	thread->rounds++;
}

static void *work(void *context)
{
	struct thread *thread = context;

	while (rounds ? thread->rounds < rounds : workload_clock(CLOCK_PROCESS_CPUTIME_ID) < end_ns)
		one_round(thread);
	return NULL;
}

static int parse_kind(char *text, struct kind *kind)
{
	char *bytes = strchr(text, ':'), *used = bytes ? strchr(bytes + 1, ':') : NULL;

	if (!used)
		return 0;
	*used = '\0';
	kind->place = *text;
	kind->bytes = workload_number("BYTES", bytes + 1);
	kind->used = workload_number("USED", used + 1);
	return 1;
}

static uint64_t run(uint64_t count)
{
	uint64_t before = witness_faults(), i;
	pthread_t ids[THREADS_MAX];

	for (i = 1; i < count; i++)
		if (pthread_create(&ids[i], NULL, work, &threads[i]))
			_exit(1);
	work(&threads[0]);
	for (i = 1; i < count; i++)
		pthread_join(ids[i], NULL);
	return witness_faults() - before;
}

int main(int argc, char **argv)
{
	struct thread all = { 0 };
	uint64_t count, faults;

	alarm(WORKLOAD_LIFE_S);
	/* Pages of 4 KiB, whatever is set here: by what a fault brings keeping memory is worth it or not. */
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
		return 1;
	if (argc < 6 || argc - 5 > KINDS_MAX)
		return 2;
	end_ns = workload_number("MS", argv[1]) * 1000000ULL;
	rounds = workload_number("ROUNDS", argv[2]);
	small = workload_number("SMALL", argv[3]);
	count = workload_number("THREADS", argv[4]);
	if (count < 1 || count > THREADS_MAX)
		return 2;
	for (; kinds_count < argc - 5; kinds_count++)
		if (!parse_kind(argv[kinds_count + 5], &kinds[kinds_count]))
			return 2;
	faults = run(count);
	for (uint64_t i = 0; i < count; i++) {
		all.rounds += threads[i].rounds;
		all.mapped += threads[i].mapped;
		all.cleared += threads[i].cleared;
	}
	workload_report("\"rounds\": %llu, \"faults\": %llu, \"mapped\": %llu, \"cleared\": %llu",
			(unsigned long long)all.rounds, (unsigned long long)faults,
			(unsigned long long)all.mapped, (unsigned long long)all.cleared);
	return 0;
}
