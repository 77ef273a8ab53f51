/* SPDX-License-Identifier: GPL-2.0 */
/*
 * governor.h: the overhead budget. Decides which groups of uprobes are on, from what their hits
 * have cost the target; pure, budget_executor.c carries it out.
 *
 * The budget is an account: CPU time of the target pays in its part, hits of probes take out what
 * they cost by the calibrated price. In debt, groups are detached; they are attached again when the
 * account covers a window of useful length. A target whose probes cost less than the limit is never
 * in debt. Where what is never detached (faults, mappings, reads of files) is over the limit by
 * itself, groups that cost next to nothing stay, and the others are attached for a moment every
 * five seconds. Not so while processes come too fast to be looked at: what those pay at breakpoints
 * that they have inherited is not seen, and all go.
 *
 * What goes first is waste: read(2), where nearly all that is read by it are sockets and the like.
 * Its probes come back with every window, and as soon as files are read by it.
 */
#ifndef MEMTOLL_GOVERNOR_H
#define MEMTOLL_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/types.h>

#include "bpf/wire/rates.h"
#include "probes/attach.h"
#include "probes/calibrate.h"

/* The bits of all groups. */
#define GROUPS_ALL ((1U << PROBE_GROUPS) - 1)

/* What was counted since the start, all processes together. */
struct governor_reading {
	uint64_t now_ns; /* CLOCK_MONOTONIC */
	uint64_t cpu_ns; /* CPU time of the target */
	double syscalls; /* that are slower because some are watched; estimated */
	struct memtoll_rates rates;
	bool shut; /* windows have ended by themselves since: see until_ns */
};

/* What is to be done now. Bits of enum probe_group. */
struct governor_order {
	unsigned int attached; /* probes that are to be there */
	unsigned int counting; /* those of them whose hits count; the others are attached idle */
	uint64_t next_ns;      /* ask again by then */
	uint64_t
		until_ns; /* a tracer that has not asked again by then has stopped: counting ends */
};

struct governor;

/*
 * limit: share of the target's CPU time that the probes may take, above 0 and below 1. command: the
 * target is started for the recording. Its start is as interesting as the rest, and nobody waits
 * for it in production: it has 50 ms of probes to begin with, a running process 10 ms; and in its
 * first second of CPU time what is never detached brings no debt.
 * may_leave_reads: GROUP_READ may be detached; rates.unwatched_reads then counts what is missed.
 */
struct governor *governor_new(double limit, bool command, const struct calibration_result *prices,
			      bool may_leave_reads);
void governor_free(struct governor *governor);

/*
 * Readings ascend in time. Attaching takes a while: groups newly attached begin to count with the
 * next call, which is to follow at once.
 */
struct governor_order governor_step(struct governor *governor,
				    const struct governor_reading *reading);

/* In a window that ends soon: postpone what takes long. */
bool governor_in_window(const struct governor *governor);

#endif /* MEMTOLL_GOVERNOR_H */
