/* SPDX-License-Identifier: GPL-2.0 */
/*
 * run_facts.h: what a recording says of its run as a whole: how it was started and on what, prices of
 * the probes, tolls not seen.
 */
#ifndef MEMTOLL_RUN_FACTS_H
#define MEMTOLL_RUN_FACTS_H

#include <stdbool.h>

#include "probes/attach.h"
#include "probes/calibrate.h"
#include "recording/recording.h"
#include "session/session.h"

/* Table meta: the command line, the machine and when counting began (CLOCK_MONOTONIC). */
void run_start_record(struct recording *recording, const struct session_config *config,
		      enum uprobe_mechanism mechanism, uint64_t start_ns);

/* Tables price (of each probe) and calibration. 0, or -errno of the recording. */
int run_prices_record(struct recording *recording, const struct calibration_result *prices);

/*
 * Tolls that this run cannot see: they are null in the report, not 0. rss_stat_exact: the kernel
 * has an event for every change of a memory counter (6.2, commit f1a7941243c1).
 */
void run_not_captured_record(struct recording *recording, const struct session_config *config,
			     bool rss_stat_exact);

#endif /* MEMTOLL_RUN_FACTS_H */
