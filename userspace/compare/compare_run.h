/* SPDX-License-Identifier: GPL-2.0 */
/* compare_run.h: the runs of `memtoll compare`, and what is read of their recordings. */
#ifndef MEMTOLL_COMPARE_RUN_H
#define MEMTOLL_COMPARE_RUN_H

#include <glib.h>
#include <stdbool.h>

#include "compare/compare.h"
#include "session/session.h"

struct compare_plan {
	const char *who; /* the command of memtoll whose runs they are: begins messages */
	struct session_config tracing; /* without output and command */
	char **command;
	GPtrArray *changes; /* "VARIABLE=VALUE"; NULL: the sides are run alike */
	/* Of traced runs: what is written goes to stderr, by way of a pipe; else stdout to nowhere. */
	bool shows_output;
	unsigned int runs;  /* of each side */
	const char *prefix; /* of the recordings to keep; NULL: temporary ones */
};

/* A run that was not traced, as wait4(2) has it (the command and the children it waited for). */
struct plain_run {
	double wall_s, cpu_s;
	double max_rss_bytes, minor_faults, major_faults;
};

/* "without", "with". */
const char *compare_side_name(enum compare_side side);

/*
 * Run the command, its output thrown away, with the plan's change on side WITH. An exit status
 * (message.h), after one message where it is not 0; a command that fails is a failure.
 */
int compare_run_plain(const struct compare_plan *plan, enum compare_side side,
		      struct plain_run *run);

/* The same under the tracer, recorded at path, in a process of its own. */
int compare_run_traced(const struct compare_plan *plan, enum compare_side side, const char *path);

/*
 * Add what a recording says to the comparison. divisor: what it was divided by: 1, or its seconds
 * where the plan has a duration. *losses: text of losses that exceed the limit, unless one is there
 * already. 0, or -errno after one message.
 */
int compare_read(const char *path, const struct compare_plan *plan, enum compare_side side,
		 struct comparison *comparison, double *divisor, char **losses);

/* Recordings, what they may have left, and their directory. */
void compare_remove_temporary(const char *directory);

/* SIGINT or SIGTERM came; set up by compare_catch_signals(). */
bool compare_interrupted(void);
void compare_catch_signals(void);

#endif /* MEMTOLL_COMPARE_RUN_H */
