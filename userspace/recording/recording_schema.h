/* SPDX-License-Identifier: GPL-2.0 */
/* recording_schema.h: what a recording's tables are, and what this memtoll makes of them. */
#ifndef MEMTOLL_RECORDING_SCHEMA_H
#define MEMTOLL_RECORDING_SCHEMA_H

#include <glib.h>
#include <sqlite3.h>
#include <stdbool.h>

/* Make all tables and views in an empty database. An SQLite status. */
int recording_schema_create(sqlite3 *database);

/*
 * Make a file's tables those that the views of this memtoll rest on. The ones that hold judgements
 * (advice, the tolls of fault classes) are temporary tables of the same names: what the file has in
 * them is of whoever made it, as its views are, and never read. Tables and columns that came after
 * the file was made are there, too: empty, or with the defaults of recording.sql.
 *
 * 0, or -errno after one line on stderr: the file lacks a table or a column that all recordings of
 * its format have, or has something else of that name.
 */
int recording_schema_put_before(sqlite3 *database, const char *path);

struct recording_view {
	char *name;
	char *query; /* SELECT ... */
	bool kept;   /* as a view: no table is made of it (stacks.sql) */
	char *index; /* columns that the table is looked up by; mostly NULL */
};

/*
 * All views, in the order they are made in: each uses only those before it. Lives as long as
 * memtoll.
 */
const GPtrArray *recording_schema_views(void);

/* Of a view that rests on tables alone: it can be asked where no view was made. Freed by the caller. */
char *recording_schema_query(const char *view);

#endif /* MEMTOLL_RECORDING_SCHEMA_H */
