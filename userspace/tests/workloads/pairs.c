// SPDX-License-Identifier: GPL-2.0
/*
 * pairs: small blocks made and freed at a high rate, with some work between them.
 *
 * usage: pairs [--seconds S | --pairs N] [--work W] [--every K [--size BYTES]]
 *              [--threads T] [--wait]
 *   --work W     rounds of arithmetic after each pair, one nanosecond or so each
 *   --every K    after every K pairs a calloc and free of BYTES, at SITE calloc
 *   --threads T  so many threads, each on its own
 * Pace lines have the pairs so far of all threads.
 * From SIGUSR1 on it allocates nothing: it works on for the seconds that are left, or ends.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "workload.h"

#define THREADS_MAX 64
#define BATCH 64

static uint64_t seconds, pairs_wanted, work = 100, every, size = 1 << 20, threads = 1;
static atomic_ullong pairs_done, callocs_done;
static struct workload_pace pace;
static volatile sig_atomic_t calm;

static void be_calm(int signal)
{
	(void)signal;
	calm = 1;
}

static NOINLINE void *pair_malloc(uint64_t bytes)
{
	void *volatile block = malloc(bytes); /* SITE malloc */

	return block;
}

static NOINLINE void pair_free(void *block)
{
	free(block); /* SITE free */
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void *big_calloc(void)
{
	void *volatile block = calloc(1, size); /* SITE calloc */

	return block;
}

static NOINLINE void big_free(void *block)
{
	free(block); /* SITE big_free */
	__asm__ volatile("" ::: "memory");
}

static NOINLINE uint64_t compute(uint64_t rounds, uint64_t seed)
{
	for (uint64_t i = 0; i < rounds; i++)
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return seed;
}

static void *run(void *first)
{
	uint64_t done = 0, seed = 1, going = 1;

	while (going) {
		int quiet = calm;

		for (int i = 0; i < BATCH && !quiet; i++) {
			pair_free(pair_malloc(24 + seed % 31 * 16));
			seed = compute(work, seed);
			done++;
			if (every && done % every == 0) {
				big_free(big_calloc());
				callocs_done++;
			}
		}
		if (quiet)
			seed = compute(BATCH * work, seed);
		else
			pairs_done += BATCH;
		if (!seconds)
			going = done < pairs_wanted && !quiet;
		else if (first)
			going = (uint64_t)workload_pace_step(&pace, pairs_done);
		else
			going = workload_clock(CLOCK_MONOTONIC) < pace.end_ns;
	}
	workload_sink = (void *)(uintptr_t)seed;
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		uint64_t *value;
	} options[] = {
		{ "--seconds", &seconds }, { "--pairs", &pairs_wanted }, { "--work", &work },
		{ "--every", &every },	   { "--size", &size },		 { "--threads", &threads },
	};
	pthread_t others[THREADS_MAX];
	int wait = 0;

	alarm(WORKLOAD_LIFE_S);
	signal(SIGUSR1, be_calm);
	for (int i = 1; i < argc; i++) {
		size_t k;

		if (!strcmp(argv[i], "--wait")) {
			wait = 1;
			continue;
		}
		for (k = 0; k < sizeof(options) / sizeof(options[0]); k++) {
			if (!strcmp(argv[i], options[k].name) && i + 1 < argc) {
				*options[k].value = workload_number(argv[0], argv[i + 1]);
				break;
			}
		}
		if (k == sizeof(options) / sizeof(options[0]))
			return 2;
		i++;
	}
	if (threads < 1 || threads > THREADS_MAX)
		return 2;
	if (wait)
		workload_wait();
	workload_pace_start(&pace, seconds);
	for (uint64_t i = 1; i < threads; i++) {
		if (pthread_create(&others[i], NULL, run, NULL))
			return 1;
	}
	run(&pace);
	for (uint64_t i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
	workload_report("\"pairs\": %llu, \"callocs\": %llu", (unsigned long long)pairs_done,
			(unsigned long long)callocs_done);
	return 0;
}
