// SPDX-License-Identifier: GPL-2.0
#include "targets/storm.h"

#include <glib.h>

/* A shell script of some length, a configure script's beginning: all of it is held. */
#define BURST 256
/* How long a storm must be over before all are held again, at most. */
#define OVER_NS 1000000000ULL
/* In a storm one in so many times as long is held. */
#define TIMES 4

void storm_started(struct storm *storm, uint64_t now_ns)
{
	storm->spent_ns = MIN(MAX(storm->spent_ns, now_ns) + storm->every_ns,
			      now_ns + BURST * storm->every_ns + OVER_NS);
}

bool storm_is_on(const struct storm *storm, uint64_t now_ns)
{
	return storm->every_ns && storm->spent_ns > now_ns + BURST * storm->every_ns;
}

bool storm_takes_sample(struct storm *storm, uint64_t now_ns)
{
	if (now_ns < storm->look_ns)
		return false;
	storm->look_ns = now_ns + TIMES * storm->every_ns;
	return true;
}
