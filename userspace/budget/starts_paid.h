/* SPDX-License-Identifier: GPL-2.0 */
/* starts_paid.h: how often the overhead limit pays for a look at a new process. */
#ifndef MEMTOLL_STARTS_PAID_H
#define MEMTOLL_STARTS_PAID_H

#include <stdint.h>

/*
 * One in so many nanoseconds, on average. limit: a share of the CPU time; 0: that of faults and
 * system calls alone (--overhead-limit 0), which pays as the default does.
 */
uint64_t starts_paid_every_ns(double limit);

#endif /* MEMTOLL_STARTS_PAID_H */
