/* SPDX-License-Identifier: GPL-2.0 */
/*
 * latency.h: how long allocator calls take: buckets, outliers, and the least length of an outlier.
 */
#ifndef MEMTOLL_LATENCY_H
#define MEMTOLL_LATENCY_H

#include <stdint.h>
#include <sys/types.h>

#include "recording/recording.h"

struct memtoll_bpf;
struct latency;

struct latency *latency_new(void);
void latency_free(struct latency *latency);

/* Write the buckets of one call site: counts over the slice. 0 or -errno. */
int latency_write(struct recording *recording, const struct memtoll_call_key *key,
		  const uint32_t *counts);

/* Keep a record until the slice is written. */
void latency_outlier(struct latency *latency, const struct memtoll_outlier *outlier);

/*
 * Write the outliers kept, giving each one's stack to want_stack(), allow as many again in the
 * next slice, and move the floor in the kernel: up while there are many, down again while there are
 * few. 0 or -errno.
 */
int latency_commit(struct latency *latency, struct recording *recording, struct memtoll_bpf *bpf,
		   void (*want_stack)(void *context, uint64_t stack_id), void *context);

#endif /* MEMTOLL_LATENCY_H */
