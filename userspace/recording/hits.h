/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hits.h: how often each probe of a process was hit in a slice, which is what the tracer cost it.
 */
#ifndef MEMTOLL_HITS_H
#define MEMTOLL_HITS_H

#include <linux/types.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/functions.h"
#include "recording/recording.h"

/* Hits of one slice and process that no sum in the kernel holds. */
struct hits {
	uint64_t faults;
	uint64_t timed;
	uint64_t maps;
	uint64_t reads;
	uint64_t other_reads;
	uint64_t samples;
	uint64_t walks;
	uint64_t idle;
	uint64_t syscalls; /* in windows */
	uint64_t calls[FN_COUNT];
};

struct hit_counts;

struct hit_counts *hit_counts_new(void);
void hit_counts_free(struct hit_counts *counts);

/* Of a process, to be added to. */
struct hits *hits_of(struct hit_counts *counts, pid_t pid);
/* Add what passed by the tracepoints of system calls, as struct memtoll_pass_sum has it. */
void hits_pass(struct hits *hits, const uint64_t *passes);

/*
 * Table hit; all begin at 0 again. syscalls_scale: all the process's system calls by those that
 * were counted. 0, or -errno of the recording.
 */
int hit_counts_write(struct hit_counts *counts, struct recording *recording, double syscalls_scale);

#endif /* MEMTOLL_HITS_H */
