// SPDX-License-Identifier: GPL-2.0
/*
 * starter: allocates before main(), as soon as its libraries are mapped, and in it, and says how often it has
 * been stopped by then: each time that a tracer holds it is a voluntary context switch.
 *
 * usage: starter
 */
#include <sys/resource.h>

#include "workload.h"

#define CALLS 13

static NOINLINE void *allocate(void)
{
	return calloc(1, 70001); /* SITE calloc */
}

static NOINLINE void *allocate_early(void)
{
	return calloc(1, 70003); /* SITE early */
}

static __attribute__((constructor)) void begin(void)
{
	for (int i = 0; i < CALLS; i++) {
		workload_sink = allocate_early();
		free(workload_sink);
	}
}

int main(void)
{
	struct rusage usage;

	for (int i = 0; i < CALLS; i++) {
		workload_sink = allocate();
		free(workload_sink);
	}
	getrusage(RUSAGE_SELF, &usage);
	workload_report("\"calls\": %d, \"switches\": %ld", CALLS, usage.ru_nvcsw);
	return 0;
}
