// SPDX-License-Identifier: GPL-2.0
/*
 * recording_schema.c: the SQL that is compiled in: tables and views of a recording that is made,
 * and the views that one is read with. analysis/memtoll/schema.py does the same in Python.
 *
 * A recording has its views with it, so that any SQLite shell can ask it. memtoll itself asks its
 * own: else a file could state its own verdict.
 */
#include "recording/recording_schema.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "base/message.h"
#include "recording_sql.h"

#define VIEW "CREATE VIEW "
#define TABLE "CREATE TABLE "

/* The views whose text is data (advice.sql), and those that rest on them. An SQLite status. */
static int create_verdict(sqlite3 *database)
{
	sqlite3_stmt *statement = NULL;
	int status =
		sqlite3_prepare_v2(database, "SELECT sql FROM advice_source", -1, &statement, NULL);

	if (status == SQLITE_OK)
		status = sqlite3_step(statement);
	if (status == SQLITE_ROW)
		status = sqlite3_exec(database, (const char *)sqlite3_column_text(statement, 0),
				      NULL, NULL, NULL);
	sqlite3_finalize(statement);
	return status == SQLITE_OK ? sqlite3_exec(database, verdict_sql, NULL, NULL, NULL) : status;
}

int recording_schema_create(sqlite3 *database)
{
	int status = sqlite3_exec(database, recording_sql, NULL, NULL, NULL);

	return status == SQLITE_OK ? create_verdict(database) : status;
}

/* A recording without facts: what the schema itself says of its tables and views. */
static sqlite3 *empty_recording(void)
{
	static sqlite3 *made;
	static gsize done;

	if (g_once_init_enter(&done)) {
		if (sqlite3_open(":memory:", &made) != SQLITE_OK ||
		    sqlite3_db_config(made, SQLITE_DBCONFIG_LOOKASIDE, NULL, 512, 2000) !=
			    SQLITE_OK ||
		    recording_schema_create(made) != SQLITE_OK)
			g_error("the compiled-in schema: %s", sqlite3_errmsg(made));
		g_once_init_leave(&done, 1);
	}
	return made;
}

static sqlite3_stmt *prepare(sqlite3 *database, const char *sql)
{
	sqlite3_stmt *statement = NULL;

	sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
	return statement; /* NULL is what SQLite takes for one without rows */
}

/* A statement with names quoted (%w), prepared. */
static sqlite3_stmt *prepare_of(sqlite3 *database, const char *format, ...)
{
	sqlite3_stmt *statement;
	va_list names;
	char *sql;

	va_start(names, format);
	sql = sqlite3_vmprintf(format, names);
	va_end(names);
	statement = sql ? prepare(database, sql) : NULL;
	sqlite3_free(sql);
	return statement;
}

static const char *text(sqlite3_stmt *statement, int column)
{
	const char *value = (const char *)sqlite3_column_text(statement, column);

	return value ? value : "";
}

/* "CREATE VIEW name AS\nSELECT ..." -> "SELECT ..." */
static char *query_of(const char *name, const char *sql)
{
	const char *body = sql + strlen(VIEW) + strlen(name);

	g_assert(g_str_has_prefix(sql, VIEW) && g_str_has_prefix(sql + strlen(VIEW), name));
	while (g_ascii_isspace(*body))
		body++;
	g_assert(!g_ascii_strncasecmp(body, "AS", 2) && g_ascii_isspace(body[2]));
	return g_strdup(body + 3);
}

const GPtrArray *recording_schema_views(void)
{
	static GPtrArray *views;
	static gsize done;

	if (g_once_init_enter(&done)) {
		sqlite3_stmt *row =
			prepare(empty_recording(), "SELECT name, sql, name IN (SELECT"
						   " name FROM kept_view) FROM sqlite_master"
						   " WHERE type = 'view' ORDER BY rowid");

		views = g_ptr_array_new();
		while (sqlite3_step(row) == SQLITE_ROW) {
			struct recording_view *view = g_new(struct recording_view, 1);

			view->name = g_strdup(text(row, 0));
			view->query = query_of(view->name, text(row, 1));
			view->kept = sqlite3_column_int(row, 2);
			g_ptr_array_add(views, view);
		}
		sqlite3_finalize(row);
		g_once_init_leave(&done, 1);
	}
	return views;
}

static bool has_row(sqlite3_stmt *statement)
{
	bool found = sqlite3_step(statement) == SQLITE_ROW;

	sqlite3_finalize(statement);
	return found;
}

/* No view. That none is virtual was looked at before (recording_open.c). */
static bool is_table(sqlite3 *database, const char *name)
{
	return has_row(prepare_of(database,
				  "SELECT 1 FROM main.sqlite_master WHERE name = '%q'"
				  " COLLATE NOCASE AND type = 'table'",
				  name));
}

static bool is_there(sqlite3 *database, const char *name)
{
	return has_row(prepare_of(database,
				  "SELECT 1 FROM main.sqlite_master WHERE name = '%q'"
				  " COLLATE NOCASE",
				  name));
}

static bool has_column(sqlite3 *database, const char *table, const char *column)
{
	return has_row(prepare_of(database,
				  "SELECT 1 FROM pragma_table_info('%q', 'main')"
				  " WHERE name = '%q' COLLATE NOCASE",
				  table, column));
}

static int run(sqlite3 *database, const char *path, const char *sql)
{
	if (sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK)
		return 0;
	message("%s cannot be read: %s", path, sqlite3_errmsg(database));
	return -EIO;
}

/* An empty temporary table as recording.sql has it. */
static int make_table(sqlite3 *database, const char *path, const char *sql)
{
	g_autofree char *create = g_strconcat("CREATE TEMP TABLE ", sql + strlen(TABLE), NULL);

	g_assert(g_str_has_prefix(sql, TABLE));
	return run(database, path, create);
}

/* The rows that the schema has put into it. rows: all its columns. */
static int fill_table(sqlite3 *database, const char *path, const char *name, sqlite3_stmt *rows)
{
	g_autoptr(GString) marks = g_string_new("?");
	sqlite3_stmt *insert;
	int i, columns = sqlite3_column_count(rows), status = SQLITE_DONE;

	for (i = 1; i < columns; i++)
		g_string_append(marks, ", ?");
	insert = prepare_of(database, "INSERT INTO temp.\"%w\" VALUES (%s)", name, marks->str);
	do {
		for (i = 0; i < columns; i++)
			sqlite3_bind_value(insert, i + 1, sqlite3_column_value(rows, i));
		status = insert ? sqlite3_step(insert) : SQLITE_ERROR;
		sqlite3_reset(insert);
	} while (status == SQLITE_DONE && sqlite3_step(rows) == SQLITE_ROW);
	sqlite3_finalize(insert);
	if (status == SQLITE_DONE)
		return 0;
	message("%s cannot be read: %s", path, sqlite3_errmsg(database));
	return -EIO;
}

/*
 * A view of the file's table with the columns that it lacks, where it does. A column that is not of
 * the first recordings of its format has a default or may be NULL.
 */
static int add_columns(sqlite3 *database, const char *path, const char *name)
{
	sqlite3_stmt *row = prepare_of(empty_recording(),
				       "SELECT name, COALESCE(dflt_value, 'NULL'),"
				       " dflt_value IS NULL AND (pk OR \"notnull\")"
				       " FROM pragma_table_info('%q')",
				       name);
	g_autoptr(GString) columns = g_string_new("");
	bool lacks = false;
	int err = 0;

	while (!err && sqlite3_step(row) == SQLITE_ROW) {
		const char *column = text(row, 0);

		g_string_append(columns, columns->len ? ", " : "");
		if (has_column(database, name, column)) {
			g_string_append_printf(columns, "\"%s\"", column);
			continue;
		}
		lacks = true;
		g_string_append_printf(columns, "%s AS \"%s\"", text(row, 1), column);
		if (sqlite3_column_int(row, 2)) {
			message("%s is damaged: its table %s has no column %s", path, name, column);
			err = -EINVAL;
		}
	}
	sqlite3_finalize(row);
	if (!err && lacks) {
		char *sql = sqlite3_mprintf("CREATE TEMP VIEW \"%w\" AS SELECT %s FROM main.\"%w\"",
					    name, columns->str, name);

		err = sql ? run(database, path, sql) : -ENOMEM;
		sqlite3_free(sql);
	}
	return err;
}

static int put_table_before(sqlite3 *database, const char *path, const char *name, const char *sql,
			    bool later)
{
	sqlite3_stmt *rows = prepare_of(empty_recording(), "SELECT * FROM \"%w\"", name);
	int err = -EINVAL;

	if (sqlite3_step(rows) == SQLITE_ROW) {
		/* Filled by the schema: no fact, but a judgement. */
		err = make_table(database, path, sql);
		if (!err)
			err = fill_table(database, path, name, rows);
	} else if (is_table(database, name)) {
		err = add_columns(database, path, name);
	} else if (is_there(database, name)) {
		message("%s is damaged: its %s is no table", path, name);
	} else if (later) {
		err = make_table(database, path, sql);
	} else {
		message("%s lacks a table of a recording: %s", path, name);
	}
	sqlite3_finalize(rows);
	return err;
}

int recording_schema_put_before(sqlite3 *database, const char *path)
{
	sqlite3_stmt *row =
		prepare(empty_recording(),
			"SELECT name, sql, name IN (SELECT name FROM"
			" later_table) FROM sqlite_master WHERE type = 'table' ORDER BY rowid");
	const GPtrArray *views = recording_schema_views();
	/* Now: all that is temporary goes where this changes. */
	int err = run(database, path, "PRAGMA temp_store = MEMORY");
	guint i;

	while (!err && sqlite3_step(row) == SQLITE_ROW)
		err = put_table_before(database, path, text(row, 0), text(row, 1),
				       sqlite3_column_int(row, 2));
	sqlite3_finalize(row);
	for (i = 0; i < views->len && !err; i++) {
		const struct recording_view *view = g_ptr_array_index(views, i);
		g_autofree char *sql =
			g_strconcat("CREATE TEMP VIEW ", view->name, " AS ", view->query, NULL);

		/* It would be read by whatever goes without ours. */
		if (is_table(database, view->name)) {
			message("%s is damaged: its %s is no view", path, view->name);
			err = -EINVAL;
		} else {
			err = run(database, path, sql);
		}
	}
	return err;
}
