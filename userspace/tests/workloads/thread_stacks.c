// SPDX-License-Identifier: GPL-2.0
/*
 * thread_stacks: threads that use much of their stacks and end at once.
 *
 * usage: thread_stacks ROUNDS THREADS KIB
 *
 * So many threads at a time, each of which writes to KIB of its stack, page by page.
 */
#include <pthread.h>

#include "witness.h"

#define THREADS_MAX 64

static uint64_t kib;
static pthread_barrier_t all_there;

static NOINLINE void use(volatile char *buffer, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += PAGE)
		buffer[at] = 1; /* SITE use */
}

static NOINLINE void *work(void *argument)
{
	char buffer[kib * 1024];

	pthread_barrier_wait(&all_there);
	use(buffer, sizeof(buffer));
	return argument;
}

int main(int argc, char **argv)
{
	uint64_t rounds, threads, faults;
	pthread_t made[THREADS_MAX];

	alarm(WORKLOAD_LIFE_S);
	if (argc != 4)
		return 2;
	rounds = workload_number(argv[0], argv[1]);
	threads = workload_number(argv[0], argv[2]);
	kib = workload_number(argv[0], argv[3]);
	if (threads > THREADS_MAX || pthread_barrier_init(&all_there, NULL, (unsigned int)threads))
		return 2;
	faults = witness_faults();
	for (uint64_t i = 0; i < rounds; i++) {
		for (uint64_t k = 0; k < threads; k++)
			if (pthread_create(&made[k], NULL, work, NULL))
				return 3;
		for (uint64_t k = 0; k < threads; k++)
			pthread_join(made[k], NULL);
	}
	workload_report("\"faults\": %llu", (unsigned long long)(witness_faults() - faults));
	return 0;
}
