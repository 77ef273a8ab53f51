/* SPDX-License-Identifier: GPL-2.0 */
/* verdict.h: counts held against bounds. Pure: no I/O. */
#ifndef MEMTOLL_VERDICT_H
#define MEMTOLL_VERDICT_H

#include <glib.h>

#include "compare/compare.h"
#include "gate/bounds.h"
#include "gate/counts.h"

enum gate_result { GATE_WITHIN, GATE_OVER, GATE_UNSURE, GATE_MISSING };

struct site_change {
	const struct count_site *site; /* as it is now, or else was */
	double before;		       /* NAN: there is no baseline */
	double now;
};

struct finding {
	const struct bound *bound;
	enum gate_result result;
	double limit;
	double before;	    /* the most of the baseline's runs; NAN: there is none */
	double now;	    /* the least of the runs; of a time their mean */
	double low, high;   /* of the runs; of a time the 99 % bounds of its mean */
	const char *reason; /* that it is unsure, or missing; NULL */
	GPtrArray *sites;   /* struct site_change, what grew most first; NULL of a time */
};

struct verdict {
	GPtrArray *findings; /* in the order of the bounds */
	unsigned int over, unsure, missing;
};

/*
 * before, now: of struct counts; before may be empty where no bound is against a baseline. A count
 * is over where it is in every run, above what the baseline's runs had at most, lost events
 * included; within where it is in any of the runs, were all that was lost added to it. Where the
 * baseline has fewer runs it may vary as much as the count does now.
 *
 * times: of bounds on times, without and with; NULL: there are none. A time is over where the 99 %
 * bounds of its mean, or of its ratio to the baseline's, are above the limit.
 */
struct verdict *verdict_new(const struct bounds *budget, const GPtrArray *before,
			    const GPtrArray *now, const struct comparison *times);

/* More was lost than times may lack: none is shown to be within. losses: why; it is kept. */
void verdict_doubt_times(struct verdict *verdict, const char *losses);

void verdict_free(struct verdict *verdict);

#endif /* MEMTOLL_VERDICT_H */
