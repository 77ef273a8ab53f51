/* SPDX-License-Identifier: GPL-2.0 */
/*
 * run_facts.h: what a recording says of its run as a whole: how it was started and on what, prices
 * of the probes, tolls not seen.
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

/* Tables price (of each probe) and calibration; age_s: how long ago it was. 0, or -errno of the recording. */
int run_prices_record(struct recording *recording, const struct calibration_result *prices,
		      double age_s);

#endif /* MEMTOLL_RUN_FACTS_H */
