// SPDX-License-Identifier: GPL-2.0
#include "session/question_times.h"

#include <glib.h>

/* One that starts cannot tell yet. */
#define RETRY_NS 250000000ULL
#define AGAIN_NS 1000000000ULL
/* Answers that are wanted sooner take a hundredth of the time. */
#define EARLY_APART 100

void question_times_begin(struct question_times *times, uint64_t now_ns)
{
	*times = (struct question_times){
		.seen_ns = now_ns,
		.due_ns = now_ns,
		.soon_ns = now_ns,
	};
}

bool question_is_due(const struct question_times *times, uint64_t now_ns)
{
	return now_ns >= (times->wanted ? MIN(times->soon_ns, times->due_ns) : times->due_ns);
}

void question_was_asked(struct question_times *times, uint64_t now_ns)
{
	times->asked_ns = now_ns;
	times->wanted = false;
}

void question_was_answered(struct question_times *times, uint64_t now_ns, bool wrote)
{
	uint64_t age = now_ns - times->seen_ns, took = now_ns - times->asked_ns;

	times->due_ns = now_ns + MAX(age, wrote ? AGAIN_NS : RETRY_NS);
	times->soon_ns = wrote ? now_ns + MAX(EARLY_APART * took, AGAIN_NS) : times->due_ns;
}
