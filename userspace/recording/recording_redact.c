// SPDX-License-Identifier: GPL-2.0
/*
 * recording_redact.c: facts are copied into tables of our own, row by row: what else a recording has
 * that may be anybody's (triggers, indexes, views) does not come with them, so that the copy can be
 * written to without a guard.
 */
#include "recording/recording_redact.h"

#include <glib.h>
#include <stdbool.h>

#include "base/message.h"
#include "recording/recording_guard.h"
#include "recording/recording_schema.h"
#include "redact_sql.h"

/* A statement with the table's name in it, prepared; NULL: out of memory, or what SQLite has to say. */
static sqlite3_stmt *prepare(sqlite3 *database, const char *format, const char *table,
			     const char *columns)
{
	sqlite3_stmt *statement = NULL;
	char *sql = sqlite3_mprintf(format, table, columns);

	if (sql)
		sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
	sqlite3_free(sql);
	return statement;
}

static char *joined(sqlite3 *database, const char *format, const char *table)
{
	sqlite3_stmt *row = prepare(database, format, table, "");
	char *text = NULL;

	if (sqlite3_step(row) == SQLITE_ROW)
		text = g_strdup((const char *)sqlite3_column_text(row, 0));
	sqlite3_finalize(row);
	return text;
}

/* An SQLite status. An unqualified table of a recording has all columns (recording_schema.h). */
static int copy_table(sqlite3 *from, sqlite3 *to, const char *table)
{
	g_autofree char *columns = joined(to,
					  "SELECT group_concat('\"' || name || '\"') FROM"
					  " pragma_table_info('%q', 'main')",
					  table);
	g_autofree char *marks =
		joined(to, "SELECT group_concat('?') FROM pragma_table_info('%q', 'main')", table);
	sqlite3_stmt *rows, *insert;
	int i, status;

	if (!columns || !marks)
		return SQLITE_NOMEM;
	rows = prepare(from, "SELECT %s FROM \"%w\"", columns, table);
	/* What breaks a rule of our tables is no fact of ours. */
	insert = prepare(to, "INSERT OR IGNORE INTO main.\"%w\" VALUES (%s)", table, marks);
	status = rows && insert ? SQLITE_OK : SQLITE_ERROR;
	while (status == SQLITE_OK && (status = sqlite3_step(rows)) == SQLITE_ROW) {
		for (i = 0; i < sqlite3_column_count(rows); i++)
			sqlite3_bind_value(insert, i + 1, sqlite3_column_value(rows, i));
		status = sqlite3_step(insert) == SQLITE_DONE ? SQLITE_OK : SQLITE_ERROR;
		sqlite3_reset(insert);
	}
	sqlite3_finalize(insert);
	sqlite3_finalize(rows);
	return status == SQLITE_DONE ? SQLITE_OK : status;
}

/* Of all tables but those that the schema itself fills, which hold judgements. */
static int copy_tables(sqlite3 *from, sqlite3 *to)
{
	sqlite3_stmt *row =
		prepare(to,
			"SELECT name FROM main.sqlite_master WHERE type = 'table' ORDER BY rowid",
			"", "");
	g_autoptr(GPtrArray) tables = g_ptr_array_new_with_free_func(g_free);
	int status = row ? SQLITE_OK : SQLITE_ERROR;
	guint i;

	while (sqlite3_step(row) == SQLITE_ROW)
		g_ptr_array_add(tables, g_strdup((const char *)sqlite3_column_text(row, 0)));
	sqlite3_finalize(row);
	for (i = 0; i < tables->len && status == SQLITE_OK; i++) {
		const char *table = g_ptr_array_index(tables, i);
		g_autofree char *filled = joined(to, "SELECT 1 FROM main.\"%w\" LIMIT 1", table);

		if (!filled)
			status = copy_table(from, to, table);
	}
	return status;
}

static int run(sqlite3 *database, const char *sql)
{
	return sqlite3_exec(database, sql, NULL, NULL, NULL);
}

/* The facts are of one moment, though the writer may go on. */
static int copy(sqlite3 *from, sqlite3 *to)
{
	int status = run(from, "SAVEPOINT redact");

	if (status != SQLITE_OK)
		return status;
	status = copy_tables(from, to);
	if (!sqlite3_get_autocommit(from))
		run(from, "RELEASE redact");
	return status;
}

int recording_redact(sqlite3 *recording)
{
	int status = run(recording, "BEGIN");

	if (status != SQLITE_OK)
		return status;
	status = run(recording, redact_sql);
	return status == SQLITE_OK ? run(recording, "COMMIT") : status;
}

sqlite3 *recording_redacted(sqlite3 *recording)
{
	sqlite3 *database = NULL;
	int status;

	/* "": on disk where it is large, under no name. */
	status = sqlite3_open("", &database);
	if (status == SQLITE_OK)
		status = run(database, "PRAGMA temp_store = MEMORY; BEGIN");
	if (status == SQLITE_OK)
		status = recording_schema_create(database);
	if (status == SQLITE_OK)
		status = copy(recording, database);
	if (status == SQLITE_OK)
		status = run(database, redact_sql);
	if (status == SQLITE_OK)
		status = run(database, "COMMIT");
	if (status == SQLITE_OK)
		status = recording_guard(database);
	if (status == SQLITE_OK && !recording_schema_put_before(database, "the redacted recording"))
		return database;
	message("the recording cannot be redacted: %s",
		status == SQLITE_ERROR ? sqlite3_errmsg(database) : sqlite3_errstr(status));
	sqlite3_close(database);
	return NULL;
}
