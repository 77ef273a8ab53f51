/* SPDX-License-Identifier: GPL-2.0 */
/* watched_slice.h: how much of a slice each group of probes was watched, and the recording's rows of it. */
#ifndef MEMTOLL_WATCHED_SLICE_H
#define MEMTOLL_WATCHED_SLICE_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire/functions.h"
#include "bpf/wire/rates.h"
#include "budget/thinned.h"
#include "probes/attach.h"
#include "recording/recording.h"

/*
 * What else the target does, a measure of how far it came in a window that does not depend on the
 * cost of probes: calls of each function by their number, and these.
 */
enum event {
	EVENT_FAULTS = FN_COUNT,
	EVENT_MAPS,
	EVENT_READS,	   /* of files, by other than read(2) */
	EVENT_PLAIN_READS, /* of files by read(2) */
	EVENTS,
};

struct watched_events {
	uint64_t count[EVENTS];
};

/* A group of probes in one slice. */
struct watched {
	uint64_t windows;
	uint64_t ns;
	uint64_t cpu_ns;	      /* of the target in that time */
	struct watched_events events; /* in that time */
	bool missed;		      /* not all of the slice */
};

/* What is recorded of a slice. */
struct watched_slice {
	struct watched groups[PROBE_GROUPS];
	struct watched calls;	       /* mapping calls, and calls that read */
	uint64_t idle_calls[FN_COUNT]; /* after windows, counted and no more */
	uint64_t idle_cpu_ns;	       /* of the target in that time */
	unsigned int idle_fns;
	struct watched_events events; /* in all of it */
	struct thinned thinned;
	struct memtoll_gaps gaps;
	struct memtoll_gaps idle_gaps;
};

/* What was counted between two readings. */
struct watched_events watched_events_between(const struct memtoll_rates *before,
					     const struct memtoll_rates *now);
void watched_events_add(struct watched_events *sum, const struct watched_events *events);

/* The groups (bits) that were not watched all of it. */
unsigned int watched_slice_missed(const struct watched_slice *slice);

/* Write the functions and calls that were not, and what was passed over. */
int watched_slice_write(const struct watched_slice *slice, struct recording *recording);

#endif /* MEMTOLL_WATCHED_SLICE_H */
