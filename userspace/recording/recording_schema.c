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

/* Behind white space and comments. */
static const char *skip_blank(const char *sql)
{
	for (;;) {
		sql += strspn(sql, " \t\n");
		if (!g_str_has_prefix(sql, "--"))
			return sql;
		sql += strcspn(sql, "\n");
	}
}

/* At the semicolon, or the end. A quote within quotes is doubled: two texts side by side. */
static const char *statement_end(const char *sql)
{
	for (;;) {
		sql += strcspn(sql, ";'\"-");
		if (!*sql || *sql == ';')
			return sql;
		if (g_str_has_prefix(sql, "--")) {
			sql += strcspn(sql, "\n");
		} else if (*sql == '-') {
			sql++;
		} else {
			sql = strchr(sql + 1, *sql);
			g_assert(sql);
			sql++;
		}
	}
}

/* "CREATE VIEW name AS\nSELECT ..." */
static struct recording_view *view_of(const char *sql, const char *end)
{
	struct recording_view *view = g_new0(struct recording_view, 1);
	const char *name = sql + strlen(VIEW);
	const char *body = name + strcspn(name, " \n");

	view->name = g_strndup(name, body - name);
	body = skip_blank(body);
	g_assert(!g_ascii_strncasecmp(body, "AS", 2) && g_ascii_isspace(body[2]));
	view->query = g_strchomp(g_strndup(body + 3, end - (body + 3)));
	return view;
}

/*
 * A view is not made by its statement, which would be parsed twice, when a recording begins and
 * whenever one is read: a fifth of the time of either. It only gets its row in the schema.
 */
static int put_view(sqlite3_stmt *insert, const struct recording_view *view)
{
	g_autofree char *sql = g_strdup_printf(VIEW "%s AS\n%s", view->name, view->query);
	int status;

	sqlite3_bind_text(insert, 1, view->name, -1, SQLITE_STATIC);
	sqlite3_bind_text(insert, 2, sql, -1, SQLITE_STATIC);
	status = sqlite3_step(insert);
	sqlite3_reset(insert);
	return status == SQLITE_DONE ? SQLITE_OK : status;
}

static int run_statement(sqlite3 *database, const char *sql, const char *end)
{
	sqlite3_stmt *statement = NULL;
	int status = sqlite3_prepare_v2(database, sql, (int)(end - sql), &statement, NULL);

	if (status != SQLITE_OK)
		return status;
	sqlite3_step(statement);
	return sqlite3_finalize(statement);
}

/* Run what makes tables, and add the views of the script to views. An SQLite status. */
static int run_script(sqlite3 *database, const char *script, sqlite3_stmt *insert, GPtrArray *views)
{
	int status = SQLITE_OK;
	const char *sql = skip_blank(script), *end;

	for (; status == SQLITE_OK && *sql; sql = skip_blank(*end ? end + 1 : end)) {
		end = statement_end(sql);
		if (!g_str_has_prefix(sql, VIEW)) {
			status = run_statement(database, sql, end);
			continue;
		}
		g_ptr_array_add(views, view_of(sql, end));
		if (insert)
			status = put_view(insert, g_ptr_array_index(views, views->len - 1));
	}
	return status;
}

static struct recording_view *view_named(const GPtrArray *views, const char *name)
{
	guint i;

	for (i = 0; i < views->len; i++) {
		struct recording_view *view = g_ptr_array_index(views, i);

		if (!strcmp(view->name, name))
			return view;
	}
	g_error("the compiled-in schema has no view %s", name);
}

/* The views whose text is data: advice_source tells it, which rests on another one (advice.sql). */
static int run_advice(sqlite3 *database, sqlite3_stmt *insert, GPtrArray *views)
{
	g_autofree char *sql = g_strdup_printf("WITH advice_rule AS (%s) %s",
					       view_named(views, "advice_rule")->query,
					       view_named(views, "advice_source")->query);
	sqlite3_stmt *statement = NULL;
	int status = sqlite3_prepare_v2(database, sql, -1, &statement, NULL);

	if (status == SQLITE_OK)
		status = sqlite3_step(statement);
	if (status == SQLITE_ROW)
		status = run_script(database, (const char *)sqlite3_column_text(statement, 0),
				    insert, views);
	sqlite3_finalize(statement);
	return status;
}

/* insert: of a view, into the schema; NULL: none of them is to be there. */
static int run_schema(sqlite3 *database, sqlite3_stmt *insert, GPtrArray *views)
{
	int status = run_script(database, recording_sql, insert, views);

	if (status == SQLITE_OK)
		status = run_advice(database, insert, views);
	return status == SQLITE_OK ? run_script(database, verdict_sql, insert, views) : status;
}

static void view_free(gpointer data)
{
	struct recording_view *view = data;

	g_free(view->name);
	g_free(view->query);
	g_free(view->index);
	g_free(view);
}

int recording_schema_create(sqlite3 *database)
{
	g_autoptr(GPtrArray) views = g_ptr_array_new_with_free_func(view_free);
	sqlite3_stmt *insert = NULL;
	int status = sqlite3_exec(database, "PRAGMA writable_schema = ON", NULL, NULL, NULL);

	if (status == SQLITE_OK)
		status = sqlite3_prepare_v2(database,
					    "INSERT INTO sqlite_master (type, name, tbl_name,"
					    " rootpage, sql) VALUES ('view', ?1, ?1, 0, ?2)",
					    -1, &insert, NULL);
	if (status == SQLITE_OK)
		status = run_schema(database, insert, views);
	sqlite3_finalize(insert);
	sqlite3_exec(database, "PRAGMA writable_schema = OFF", NULL, NULL, NULL);
	return status;
}

static sqlite3_stmt *prepare(sqlite3 *database, const char *sql)
{
	sqlite3_stmt *statement = NULL;

	sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
	return statement; /* NULL is what SQLite takes for one without rows */
}

/* Which views are more than tables that are made of them: kept_view and indexed_view tell. */
static int mark_views(sqlite3 *database, GPtrArray *views)
{
	sqlite3_stmt *row = prepare(database, view_named(views, "kept_view")->query);
	int status;

	while ((status = sqlite3_step(row)) == SQLITE_ROW)
		view_named(views, (const char *)sqlite3_column_text(row, 0))->kept = true;
	sqlite3_finalize(row);
	if (status != SQLITE_DONE)
		return status;
	row = prepare(database, view_named(views, "indexed_view")->query);
	while ((status = sqlite3_step(row)) == SQLITE_ROW)
		view_named(views, (const char *)sqlite3_column_text(row, 0))->index =
			g_strdup((const char *)sqlite3_column_text(row, 1));
	sqlite3_finalize(row);
	return status == SQLITE_DONE ? SQLITE_OK : status;
}

/* What the schema itself says of its tables, and of its views. */
struct own_schema {
	sqlite3 *tables; /* without facts */
	GPtrArray *views;
};

static const struct own_schema *own_schema(void)
{
	static struct own_schema own;
	static gsize done;

	if (g_once_init_enter(&done)) {
		own.views = g_ptr_array_new();
		if (sqlite3_open(":memory:", &own.tables) != SQLITE_OK ||
		    sqlite3_db_config(own.tables, SQLITE_DBCONFIG_LOOKASIDE, NULL, 512, 2000) !=
			    SQLITE_OK ||
		    run_schema(own.tables, NULL, own.views) != SQLITE_OK ||
		    mark_views(own.tables, own.views) != SQLITE_OK)
			g_error("the compiled-in schema: %s", sqlite3_errmsg(own.tables));
		g_once_init_leave(&done, 1);
	}
	return &own;
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

const GPtrArray *recording_schema_views(void)
{
	return own_schema()->views;
}

/* Out of the text alone: making the tables, for what may be the only question, takes as long as it. */
char *recording_schema_query(const char *view)
{
	g_autofree char *begin = g_strdup_printf("\n" VIEW "%s AS\n", view);
	const char *sql = strstr(recording_sql, begin);
	struct recording_view *found;
	char *query;

	g_assert(sql);
	found = view_of(sql + 1, statement_end(sql + 1));
	query = g_steal_pointer(&found->query);
	view_free(found);
	return query;
}

/*
 * What the file's schema has under each name, in lower case: a column of the rest of the row for a
 * name. That no table is virtual was looked at before (recording_open.c).
 */
static GHashTable *names_of(sqlite3_stmt *row)
{
	GHashTable *names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);

	while (sqlite3_step(row) == SQLITE_ROW)
		g_hash_table_insert(names, g_ascii_strdown(text(row, 0), -1),
				    g_strdup(text(row, 1)));
	sqlite3_finalize(row);
	return names;
}

static bool is_table(GHashTable *there, const char *name)
{
	return !g_strcmp0(g_hash_table_lookup(there, name), "table");
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
	sqlite3_stmt *row = prepare_of(own_schema()->tables,
				       "SELECT name, COALESCE(dflt_value, 'NULL'),"
				       " dflt_value IS NULL AND (pk OR \"notnull\")"
				       " FROM pragma_table_info('%q')",
				       name);
	g_autoptr(GHashTable) has = names_of(
		prepare_of(database, "SELECT name, '' FROM pragma_table_info('%q', 'main')", name));
	g_autoptr(GString) columns = g_string_new("");
	bool lacks = false;
	int err = 0;

	while (!err && sqlite3_step(row) == SQLITE_ROW) {
		const char *column = text(row, 0);

		g_string_append(columns, columns->len ? ", " : "");
		if (g_hash_table_contains(has, column)) {
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

static int put_table_before(sqlite3 *database, const char *path, GHashTable *there,
			    const char *name, const char *sql, bool later)
{
	sqlite3_stmt *rows = prepare_of(own_schema()->tables, "SELECT * FROM \"%w\"", name);
	int err = -EINVAL;

	if (sqlite3_step(rows) == SQLITE_ROW) {
		/* Filled by the schema: no fact, but a judgement. */
		err = make_table(database, path, sql);
		if (!err)
			err = fill_table(database, path, name, rows);
	} else if (is_table(there, name)) {
		err = add_columns(database, path, name);
	} else if (g_hash_table_contains(there, name)) {
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
		prepare(own_schema()->tables,
			"SELECT name, sql, name IN (SELECT name FROM"
			" later_table) FROM sqlite_master WHERE type = 'table' ORDER BY rowid");
	const GPtrArray *views = recording_schema_views();
	g_autoptr(GHashTable) there =
		names_of(prepare(database, "SELECT name, type FROM main.sqlite_master"
					   " WHERE type IN ('table', 'view')"));
	guint i;
	int err = 0;

	while (!err && sqlite3_step(row) == SQLITE_ROW)
		err = put_table_before(database, path, there, text(row, 0), text(row, 1),
				       sqlite3_column_int(row, 2));
	sqlite3_finalize(row);
	for (i = 0; i < views->len && !err; i++) {
		const struct recording_view *view = g_ptr_array_index(views, i);

		/* It would be read by whatever goes without ours. */
		if (is_table(there, view->name)) {
			message("%s is damaged: its %s is no view", path, view->name);
			err = -EINVAL;
		}
	}
	return err;
}
