/* SPDX-License-Identifier: GPL-2.0 */
/*
 * own_limits.h: what the tracer lifts of the limits it was started with, and a command it runs is not to
 * notice.
 */
#ifndef MEMTOLL_OWN_LIMITS_H
#define MEMTOLL_OWN_LIMITS_H

/*
 * As many descriptors as may be had, for probes are one each. A file that may not grow further is an
 * error of the write, not a deadly signal (SIGXFSZ).
 */
void own_limits_lift(void);

/* In a child that is about to run something else: as they were. */
void own_limits_give_back(void);

#endif /* MEMTOLL_OWN_LIMITS_H */
