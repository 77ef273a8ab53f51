/* SPDX-License-Identifier: GPL-2.0 */
/*
 * storm.h: whether processes start faster than the overhead limit pays for holding them. The kernel
 * side has the same rule for looking at those that nobody holds (start_is_brief()).
 */
#ifndef MEMTOLL_STORM_H
#define MEMTOLL_STORM_H

#include <stdbool.h>
#include <stdint.h>

struct storm {
	uint64_t every_ns; /* one in so long is paid for, and a burst of them; 0: all are */
	uint64_t spent_ns; /* so far those are paid for that have started */
	uint64_t look_ns;  /* the next of a storm is held after that */
};

/* A process has started, held or not. */
void storm_started(struct storm *storm, uint64_t now_ns);

bool storm_is_on(const struct storm *storm, uint64_t now_ns);

/* In a storm: whether one more may be held, as a sample. It counts as taken. */
bool storm_takes_sample(struct storm *storm, uint64_t now_ns);

#endif /* MEMTOLL_STORM_H */
