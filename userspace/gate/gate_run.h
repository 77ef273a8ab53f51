/* SPDX-License-Identifier: GPL-2.0 */
/* gate_run.h: the runs of `memtoll gate`: of a command, or in turns of two. */
#ifndef MEMTOLL_GATE_RUN_H
#define MEMTOLL_GATE_RUN_H

#include <glib.h>
#include <stdbool.h>

#include "compare/compare_run.h"
#include "gate/bounds.h"
#include "gate/counts.h"

struct gate_plan {
	/* The command of today (WITH), and one to compare it with (WITHOUT); no command: none. */
	struct compare_plan side[SIDES];
	const struct bounds *budget;
	const char *prefix; /* of the recordings to keep; NULL: temporary ones */
	unsigned int runs;  /* at most, or with all_runs so many */
	bool all_runs;
};

/* "PREFIX-now-1.memtoll"; freed by g_free(). */
char *gate_recording_path(const char *prefix, enum compare_side side, unsigned int run);

/*
 * Run, and add what the recordings say to before and now (struct counts), and to times, unless that
 * is NULL. Without all_runs it ends with the first run after which all is within: a count that varies by
 * itself is over in some runs, and what grew is in all. *losses: as compare_read(). Exit status,
 * after one message where it is not 0.
 */
int gate_run(const struct gate_plan *plan, GPtrArray *before, GPtrArray *now,
	     struct comparison *times, char **losses);

#endif /* MEMTOLL_GATE_RUN_H */
