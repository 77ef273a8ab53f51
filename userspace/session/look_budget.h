/* SPDX-License-Identifier: GPL-2.0 */
/*
 * look_budget.h: how often the memory of targets is looked at for what was stored there. A look at a
 * page that is on swap brings it in, and may take a thousand times as long as another one: after
 * each there is none for so many times as long as it took.
 */
#ifndef MEMTOLL_LOOK_BUDGET_H
#define MEMTOLL_LOOK_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* One part of the time in so many goes to looks. */
#define LOOK_PAUSE_FACTOR 50
/* The first ones are made whatever they take, up to that: without them nothing is known. */
#define LOOKS_FIRST 64
#define LOOKS_FIRST_NS 10000000ULL

struct look_budget {
	uint64_t made;
	uint64_t took_ns;  /* of the first ones */
	uint64_t pause_ns; /* no look before */
};

static inline bool look_is_allowed(const struct look_budget *budget, uint64_t now_ns)
{
	return now_ns >= budget->pause_ns;
}

static inline void look_was_made(struct look_budget *budget, uint64_t begin_ns, uint64_t end_ns)
{
	budget->made++;
	budget->took_ns += end_ns - begin_ns;
	if (budget->made >= LOOKS_FIRST || budget->took_ns > LOOKS_FIRST_NS)
		budget->pause_ns = end_ns + LOOK_PAUSE_FACTOR * (end_ns - begin_ns);
}

#endif /* MEMTOLL_LOOK_BUDGET_H */
