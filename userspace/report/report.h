/* SPDX-License-Identifier: GPL-2.0 */
/* report.h: from the views over a recording to text or JSON. Computes nothing itself. */
#ifndef MEMTOLL_REPORT_H
#define MEMTOLL_REPORT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>

struct report_options {
	unsigned int sites; /* how many sites to print; 0: all */
	bool color;
	/* Of the short report only. */
	bool sites_given;	     /* and so not what there is room for */
	bool compute;		     /* where it computes, too */
	unsigned int columns, lines; /* of the terminal; 0: 80 and 24 */
	const char *full_command;    /* what prints the full report */
};

/* One screen: shares, verdict, what to do, where memory costs most, confidence. 0 or -errno. */
int report_short(sqlite3 *database, const struct report_options *options, FILE *out);

/* The verdict, toll table, sites, ledger, checks, losses and overhead as text. 0 or -errno. */
int report_text(sqlite3 *database, const struct report_options *options, FILE *out);

/* The object of userspace/doc/recording.md, "JSON", from view report_json. 0 or -errno. */
int report_json(sqlite3 *database, const struct report_options *options, FILE *out);

/*
 * Lines "key: text", in a stated order and so many tokens at most: what has no room is left out from
 * the end, and named. tokens: REPORT_BRIEF_LEAST at least. 0 or -errno.
 */
int report_brief(sqlite3 *database, unsigned int tokens, FILE *out);
/* The first line, and the names of all others. */
#define REPORT_BRIEF_LEAST 320

/* The JSON Schema of that object. 0 or -errno. */
int report_print_schema(FILE *out);

/*
 * The SQL by which reports make of each view, in their order, a temporary table of its name: SQLite
 * cannot plan the last of them nested (65,535 mentions of a table at most). 0 or -errno.
 */
int report_print_views(FILE *out);

/* Folded stacks of one toll ("zero.kernel"), allocation stack; weights are microseconds. */
int report_folded(sqlite3 *database, const char *toll, FILE *out);

/*
 * Whether losses are beyond the limit, 1 % of what was counted in their kind: exit status 4. In
 * *which their names, counts and remedies, freed by the caller with g_free(); NULL where they
 * could not be read.
 */
bool report_losses_exceed(sqlite3 *database, char **which);

#endif /* MEMTOLL_REPORT_H */
