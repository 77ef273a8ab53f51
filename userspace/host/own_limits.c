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
 * ring buffer. There is room if the ring buffer, stacks, and the command fit in beside that.
 */
#define START_BYTES (60LL << 20)
#define ROOMY_BYTES (128LL << 20)

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

bool own_limits_are_small(uint64_t buffer_bytes)
{
	int64_t limit, wanted = START_BYTES + (int64_t)buffer_bytes;
	struct memory_cgroup group;

	if (!cgroup_of_process(getpid(), &group))
		return false;
	limit = group.limit_bytes;
	memory_cgroup_free(&group);
	if (limit < 0)
		return false;
	if (limit < wanted)
		message("this memory cgroup may have %" PRId64 " MiB, memtoll takes some %" PRId64
			": the kernel may kill it",
			limit >> 20, wanted >> 20);
	return limit < ROOMY_BYTES;
}

void own_limits_give_back(void)
{
	if (!lifted)
		return;
	setrlimit(RLIMIT_NOFILE, &descriptors);
	sigaction(SIGXFSZ, &too_large, NULL);
}
