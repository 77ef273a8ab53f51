/* SPDX-License-Identifier: GPL-2.0 */
/* report_views.h: what report.c does for whoever else asks a recording's views. */
#ifndef MEMTOLL_REPORT_VIEWS_H
#define MEMTOLL_REPORT_VIEWS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Work this memtoll's own views (recording_schema.h) out, in their order up to the one named last,
 * each once, into temporary tables of the same names; a few stay views (kept_view). With sites, JSON
 * is made of the first so many only. 0, or -errno after a line on stderr.
 */
int report_views_make(sqlite3 *database, const char *last, unsigned int sites);

/* One of them, for who asks few; what it rests on was made before. The same result. */
int report_view_make(sqlite3 *database, const char *name, bool as_table);

/* One line on stderr: which recording cannot be read, and why. */
void report_complain(sqlite3 *database, const char *what);

/* Flush; -EIO after a line on stderr when not all could be written. */
int report_flush(FILE *out);

#endif /* MEMTOLL_REPORT_VIEWS_H */
