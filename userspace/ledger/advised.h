/* SPDX-License-Identifier: GPL-2.0 */
/*
 * advised.h: memory that the program has told the kernel to let go of, and uses again: taken out of
 * its page tables while its file keeps it (MADV_DONTNEED), or to be pushed out first (MADV_COLD).
 *
 * Pure: records in, facts out. A page that comes back counts once for the last advice on it: what it
 * goes for after that is other reasons'. Memory that is cleared when it comes back is giveback.h's.
 */
#ifndef MEMTOLL_ADVISED_H
#define MEMTOLL_ADVISED_H

#include <linux/types.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/records.h"

struct advised;

/* madvise(2) */
#define ADVISED_DONTNEED 4
#define ADVISED_COLD 20

struct advised *advised_new(void);
void advised_free(struct advised *advised);

/* A successful mapping call, and a run of faults, as the ring buffer has them. */
void advised_mapping(struct advised *advised, const struct memtoll_mapping *mapping);
void advised_run(struct advised *advised, const struct memtoll_run *run);

/* The memory of a process is gone, or its id is another's. */
void advised_restart(struct advised *advised, pid_t pid);

/* By advice and its stack: what was advised (fault_class 0), or what came back of it, by class. */
struct advised_sum {
	pid_t pid;
	uint32_t advice;
	uint64_t stack_id;
	uint32_t fault_class; /* of the faults; meaningful where there are some */
	uint32_t major;
	uint64_t calls;
	uint64_t bytes;
	uint64_t again_faults;
	uint64_t again_pages;
};

typedef void advised_fn(void *context, const struct advised_sum *sum);

/* Facts since the last drain. */
void advised_drain(struct advised *advised, advised_fn *on_sum, void *context);

#endif /* MEMTOLL_ADVISED_H */
