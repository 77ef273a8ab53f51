/* SPDX-License-Identifier: GPL-2.0 */
/* own_limits.h: resource limits that the tracer raises for itself, and restores for its command. */
#ifndef MEMTOLL_OWN_LIMITS_H
#define MEMTOLL_OWN_LIMITS_H

#include <stdint.h>

/*
 * As many descriptors as allowed, since each probe needs one. A file that reaches its limit fails
 * the write, instead of killing us by SIGXFSZ.
 */
void own_limits_lift(void);

/*
 * Bytes for the ring buffer: as many as is usual, or few, where our memory cgroup has so small a
 * limit that the kernel would kill us for it. Said where it may do so nevertheless.
 */
uint64_t own_limits_buffer(uint64_t usual);

/* In a child before its exec: restore them. */
void own_limits_give_back(void);

#endif /* MEMTOLL_OWN_LIMITS_H */
