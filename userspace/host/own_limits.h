/* SPDX-License-Identifier: GPL-2.0 */
/* own_limits.h: resource limits that the tracer raises for itself, and restores for its command. */
#ifndef MEMTOLL_OWN_LIMITS_H
#define MEMTOLL_OWN_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * As many descriptors as allowed, since each probe needs one. A file that reaches its limit fails
 * the write, instead of killing us by SIGXFSZ.
 */
void own_limits_lift(void);

/*
 * Whether our memory cgroup has so small a limit that the kernel would kill us for a ring buffer and
 * a table of stacks of the usual sizes. Said where it may do so nevertheless. buffer_bytes: of the
 * ring buffer, where that is asked for; or 0.
 */
bool own_limits_are_small(uint64_t buffer_bytes);

/* In a child before its exec: restore them. */
void own_limits_give_back(void);

#endif /* MEMTOLL_OWN_LIMITS_H */
