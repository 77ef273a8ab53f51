// SPDX-License-Identifier: GPL-2.0
#include "host/own_limits.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/message.h"
#include "host/cgroup.h"

/*
 * What maps, programs and memtoll itself take at the most, when it starts: some 60 MiB without the
 * ring buffer. Half as much again, for the command and what else is in the cgroup.
 */
#define START_BYTES (60 << 20)
#define ROOMY_BYTES (128 << 20)
#define SMALL_BUFFER (1 << 20)

static bool lifted;
static struct rlimit descriptors;
static struct sigaction too_large;

void own_limits_lift(void)
{
	const struct sigaction ignored = { .sa_handler = SIG_IGN };
	struct rlimit limit;

	if (lifted || getrlimit(RLIMIT_NOFILE, &descriptors) ||
	    sigaction(SIGXFSZ, &ignored, &too_large))
		return;
	lifted = true;
	limit = descriptors;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

uint64_t own_limits_buffer(uint64_t usual)
{
	struct memory_cgroup group;
	int64_t limit;

	if (!cgroup_of_process(getpid(), &group))
		return usual;
	limit = group.limit_bytes;
	memory_cgroup_free(&group);
	if (limit < 0 || limit >= ROOMY_BYTES)
		return usual;
	if (limit < START_BYTES)
		message("this memory cgroup may have %" PRId64
			" MiB, memtoll takes some %d: the kernel may kill it",
			limit >> 20, START_BYTES >> 20);
	return SMALL_BUFFER;
}

void own_limits_give_back(void)
{
	if (!lifted)
		return;
	setrlimit(RLIMIT_NOFILE, &descriptors);
	sigaction(SIGXFSZ, &too_large, NULL);
}
