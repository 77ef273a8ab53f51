/* SPDX-License-Identifier: GPL-2.0 */
/*
 * watched_times.h: how much of each process's CPU time fell into the windows of each group of
 * probes. One factor for all would make hundreds of calls of each that a process made which lived
 * within a window: of a command with many short children that is what most are.
 */
#ifndef MEMTOLL_WATCHED_TIMES_H
#define MEMTOLL_WATCHED_TIMES_H

#include <stdint.h>
#include <sys/types.h>

#include "probes/attach.h"
#include "recording/recording.h"

struct watched_times;

/* What one process had in slices in which a group was not always watched. */
struct watched_time {
	uint64_t cpu_ns;
	uint64_t watched_ns;  /* of it, while the group was */
	unsigned int windows; /* in which that was */
};

struct watched_times *watched_times_new(void);
void watched_times_free(struct watched_times *times);

/*
 * From now_ns (CLOCK_MONOTONIC) on these groups (bits of enum probe_group) are watched. No earlier
 * than the change before.
 */
void watched_times_change(struct watched_times *times, uint64_t now_ns, unsigned int groups);

/*
 * A process that is there since start_ns had used cpu_ns of CPU time at at_ns, all in all: what has
 * come since the last reading is divided by how much of the time was watched meanwhile. One that has
 * ended is read as of its end.
 */
void watched_times_read(struct watched_times *times, pid_t pid, uint64_t start_ns, uint64_t at_ns,
			uint64_t cpu_ns);

/* What comes now is of the next slice. Processes that were not read in this one are forgotten. */
void watched_times_end_slice(struct watched_times *times);

/* Calls of it were seen: of the many that never allocate in a window nothing has to be said. */
void watched_times_called(struct watched_times *times, pid_t pid);

/* What it had up to the end of the last slice, and is not yet written; NULL: it is not known. */
const struct watched_time *watched_times_of(const struct watched_times *times, pid_t pid,
					    enum probe_group group);

/*
 * Write what those of whom calls were seen had. groups (bits): those that were not always watched in
 * the slice that has ended.
 */
int watched_times_write(struct watched_times *times, unsigned int groups,
			struct recording *recording);

#endif /* MEMTOLL_WATCHED_TIMES_H */
