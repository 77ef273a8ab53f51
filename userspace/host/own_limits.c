// SPDX-License-Identifier: GPL-2.0
#include "host/own_limits.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

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

void own_limits_give_back(void)
{
	if (!lifted)
		return;
	setrlimit(RLIMIT_NOFILE, &descriptors);
	sigaction(SIGXFSZ, &too_large, NULL);
}
