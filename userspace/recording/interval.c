// SPDX-License-Identifier: GPL-2.0
/*
 * interval.c: a database of our own, in memory, with the tables of a recording. The rows of the last
 * slices are copied there, and the views worked out by statements that are planned once: planning
 * takes ten times as long as they do.
 */
#include "recording/interval.h"

#include <string.h>

#include "recording/recording_schema.h"

#define LAST_VIEW "family"

/* A table that the views ask, as far as they are worked out. */
struct copied {
	char *name;
	bool by_slice;
	sqlite3_stmt *clear;
	sqlite3_stmt *insert;
	sqlite3_stmt *select; /* of the recording's connection */
	int columns;
};

/* A view that is worked out: emptied, and filled again. */
struct worked_out {
	sqlite3_stmt *clear;
	sqlite3_stmt *fill;
};

struct interval_reader {
	sqlite3 *database;
	GArray *tables; /* struct copied */
	GArray *views;	/* struct worked_out */
	int64_t last_slice;
	struct interval interval;
	char *error;
};

static void clear_copied(gpointer data)
{
	struct copied *table = data;

	g_free(table->name);
	sqlite3_finalize(table->clear);
	sqlite3_finalize(table->insert);
	sqlite3_finalize(table->select);
}

static void clear_worked_out(gpointer data)
{
	struct worked_out *view = data;

	sqlite3_finalize(view->clear);
	sqlite3_finalize(view->fill);
}

static bool fail(struct interval_reader *reader, sqlite3 *database)
{
	g_free(reader->error);
	reader->error = g_strdup(database ? sqlite3_errmsg(database) : "out of memory");
	return false;
}

static sqlite3_stmt *prepare(sqlite3 *database, const char *format, const char *name)
{
	sqlite3_stmt *statement = NULL;
	char *sql = sqlite3_mprintf(format, name);

	if (sql)
		sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL);
	sqlite3_free(sql);
	return statement;
}

static bool step_to_end(struct interval_reader *reader, sqlite3_stmt *statement)
{
	bool done = sqlite3_step(statement) == SQLITE_DONE || fail(reader, reader->database);

	sqlite3_reset(statement);
	return done;
}

/* Whether one of the views that are worked out asks the table. */
static bool is_asked(const char *table)
{
	g_autofree char *pattern = g_strdup_printf("(FROM|JOIN|,)\\s+(main\\.)?%s\\b", table);
	g_autoptr(GRegex) regex = g_regex_new(pattern, 0, 0, NULL);
	const GPtrArray *views = recording_schema_views();
	const struct recording_view *view;
	guint i = 0;

	do {
		view = g_ptr_array_index(views, i++);
		if (g_regex_match(regex, view->query, 0, NULL))
			return true;
	} while (strcmp(view->name, LAST_VIEW));
	return false;
}

static bool add_table(struct interval_reader *reader, const char *name, int columns, bool by_slice)
{
	g_autoptr(GString) sql = g_string_new("INSERT OR REPLACE INTO main.\"%w\" VALUES (?");
	struct copied table = {
		.name = g_strdup(name),
		.by_slice = by_slice,
		.columns = columns,
		.clear = prepare(reader->database, "DELETE FROM main.\"%w\"", name),
	};
	int i;

	for (i = 1; i < columns; i++)
		g_string_append(sql, ", ?");
	g_string_append(sql, ")");
	table.insert = prepare(reader->database, sql->str, name);
	g_array_append_val(reader->tables, table);
	return (table.clear && table.insert) || fail(reader, reader->database);
}

static bool add_tables(struct interval_reader *reader)
{
	sqlite3_stmt *row = prepare(
		reader->database,
		"SELECT t.name, COUNT(*), SUM(c.name = 'slice') FROM main.sqlite_master t"
		" JOIN pragma_table_info(t.name, 'main') c WHERE t.type = 'table' GROUP BY t.name%s",
		"");
	bool good = row || fail(reader, reader->database);

	while (good && sqlite3_step(row) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(row, 0);

		if (is_asked(name))
			good = add_table(reader, name, sqlite3_column_int(row, 1),
					 sqlite3_column_int(row, 2));
	}
	sqlite3_finalize(row);
	return good;
}

static bool add_view(struct interval_reader *reader, const struct recording_view *view)
{
	g_autofree char *make =
		g_strdup_printf("CREATE TEMP %s \"%s\" AS %s", view->kept ? "VIEW" : "TABLE",
				view->name, view->query);
	g_autofree char *fill =
		g_strdup_printf("INSERT INTO temp.\"%s\" %s", view->name, view->query);
	struct worked_out worked_out = { 0 };

	/* Of no rows: what it makes is the columns. */
	if (sqlite3_exec(reader->database, make, NULL, NULL, NULL) != SQLITE_OK)
		return fail(reader, reader->database);
	if (view->kept)
		return true;
	worked_out.clear = prepare(reader->database, "DELETE FROM temp.\"%w\"", view->name);
	sqlite3_prepare_v3(reader->database, fill, -1, SQLITE_PREPARE_PERSISTENT, &worked_out.fill,
			   NULL);
	g_array_append_val(reader->views, worked_out);
	return (worked_out.clear && worked_out.fill) || fail(reader, reader->database);
}

static bool add_views(struct interval_reader *reader)
{
	const GPtrArray *views = recording_schema_views();
	const struct recording_view *view;
	bool good;
	guint i = 0;

	do {
		view = g_ptr_array_index(views, i++);
		good = add_view(reader, view);
	} while (good && strcmp(view->name, LAST_VIEW));
	return good;
}

struct interval_reader *interval_reader_new(void)
{
	struct interval_reader *reader = g_new0(struct interval_reader, 1);

	reader->tables = g_array_new(FALSE, FALSE, sizeof(struct copied));
	g_array_set_clear_func(reader->tables, clear_copied);
	reader->views = g_array_new(FALSE, FALSE, sizeof(struct worked_out));
	g_array_set_clear_func(reader->views, clear_worked_out);
	reader->interval.tolls = g_array_new(FALSE, FALSE, sizeof(struct interval_toll));
	reader->interval.losses = g_array_new(FALSE, FALSE, sizeof(struct interval_loss));
	if (sqlite3_open(":memory:", &reader->database) == SQLITE_OK &&
	    recording_schema_create(reader->database) == SQLITE_OK && add_tables(reader) &&
	    add_views(reader))
		return reader;
	interval_reader_free(reader);
	return NULL;
}

void interval_reader_free(struct interval_reader *reader)
{
	if (!reader)
		return;
	g_array_free(reader->tables, TRUE);
	g_array_free(reader->views, TRUE);
	sqlite3_close(reader->database);
	g_array_free(reader->interval.tolls, TRUE);
	g_array_free(reader->interval.losses, TRUE);
	g_free(reader->error);
	g_free(reader);
}

static bool copy(struct interval_reader *reader, struct copied *table, sqlite3 *recording)
{
	bool good = step_to_end(reader, table->clear);
	int i, status = SQLITE_ROW;

	if (!table->select)
		table->select =
			prepare(recording,
				table->by_slice ? "SELECT * FROM main.\"%w\" WHERE slice > ?" :
						  "SELECT * FROM main.\"%w\"",
				table->name);
	if (!table->select)
		return fail(reader, recording);
	if (table->by_slice)
		sqlite3_bind_int64(table->select, 1, reader->last_slice);
	while (good && (status = sqlite3_step(table->select)) == SQLITE_ROW) {
		for (i = 0; i < table->columns; i++)
			sqlite3_bind_value(table->insert, i + 1,
					   sqlite3_column_value(table->select, i));
		good = step_to_end(reader, table->insert);
	}
	if (good && status != SQLITE_DONE)
		good = fail(reader, recording);
	/* A statement that is not reset would keep the writer from what it does next. */
	sqlite3_reset(table->select);
	return good;
}

static bool work_out(struct interval_reader *reader)
{
	bool good = true;
	guint i;

	for (i = 0; i < reader->views->len && good; i++) {
		struct worked_out *view = &g_array_index(reader->views, struct worked_out, i);

		good = step_to_end(reader, view->clear) && step_to_end(reader, view->fill);
	}
	return good;
}

static const char *interned(sqlite3_stmt *row, int column)
{
	return g_intern_string((const char *)sqlite3_column_text(row, column));
}

static void read_tolls(struct interval_reader *reader)
{
	sqlite3_stmt *row = prepare(reader->database,
				    "SELECT toll, family, time_ns IS NOT NULL, time_ns, count,"
				    " share FROM temp.toll ORDER BY position%s",
				    "");
	GArray *tolls = reader->interval.tolls;

	g_array_set_size(tolls, 0);
	while (row && sqlite3_step(row) == SQLITE_ROW) {
		const struct interval_toll toll = {
			.name = interned(row, 0),
			.family = interned(row, 1),
			.captured = sqlite3_column_int(row, 2),
			.time_ns = sqlite3_column_double(row, 3),
			.count = sqlite3_column_int64(row, 4),
			.share = sqlite3_column_double(row, 5),
		};

		g_array_append_val(tolls, toll);
	}
	sqlite3_finalize(row);
}

static void read_losses(struct interval_reader *reader)
{
	sqlite3_stmt *row = prepare(reader->database,
				    "SELECT name, count, exceeds FROM temp.losses WHERE count > 0"
				    " ORDER BY name%s",
				    "");
	GArray *losses = reader->interval.losses;

	g_array_set_size(losses, 0);
	while (row && sqlite3_step(row) == SQLITE_ROW) {
		const struct interval_loss loss = {
			.name = interned(row, 0),
			.count = sqlite3_column_int64(row, 1),
			.exceeds = sqlite3_column_int(row, 2),
		};

		g_array_append_val(losses, loss);
	}
	sqlite3_finalize(row);
}

static void read_sums(struct interval_reader *reader)
{
	sqlite3_stmt *row =
		prepare(reader->database,
			"SELECT COALESCE(MIN(s.start_ns), 0), COALESCE(MAX(s.end_ns), 0),"
			" o.observed_ns, o.overhead_ns, COALESCE(MAX(s.slice), 0)"
			" FROM temp.observed o LEFT JOIN main.slice s%s",
			"");
	struct interval *interval = &reader->interval;

	if (row && sqlite3_step(row) == SQLITE_ROW) {
		interval->start_ns = sqlite3_column_int64(row, 0);
		interval->end_ns = sqlite3_column_int64(row, 1);
		interval->observed_ns = sqlite3_column_double(row, 2);
		interval->overhead_ns = sqlite3_column_double(row, 3);
		interval->overhead = interval->overhead_ns > 0 ?
					     interval->overhead_ns / (interval->observed_ns +
								      interval->overhead_ns) :
					     0;
		reader->last_slice = MAX(reader->last_slice, sqlite3_column_int64(row, 4));
	}
	sqlite3_finalize(row);
}

const struct interval *interval_read(struct interval_reader *reader, sqlite3 *recording)
{
	bool good = true;
	guint i;

	sqlite3_exec(reader->database, "BEGIN", NULL, NULL, NULL);
	for (i = 0; i < reader->tables->len && good; i++)
		good = copy(reader, &g_array_index(reader->tables, struct copied, i), recording);
	if (good)
		good = work_out(reader);
	sqlite3_exec(reader->database, good ? "COMMIT" : "ROLLBACK", NULL, NULL, NULL);
	if (!good)
		return NULL;
	read_tolls(reader);
	read_losses(reader);
	read_sums(reader);
	reader->interval.database = reader->database;
	reader->interval.recording = recording;
	return &reader->interval;
}

GArray *interval_processes(const struct interval *interval)
{
	sqlite3_stmt *row = prepare(
		interval->database,
		"SELECT o.pid, o.observed_ns, o.overhead_ns, COALESCE(s.rss_bytes, -1),"
		" COALESCE(s.swap_bytes, -1) FROM temp.process_observed o"
		" LEFT JOIN (SELECT pid, MAX(slice), rss_bytes, swap_bytes FROM main.process_slice"
		" GROUP BY pid) s ON s.pid = o.pid%s",
		"");
	GArray *processes = g_array_new(FALSE, FALSE, sizeof(struct interval_process));

	while (row && sqlite3_step(row) == SQLITE_ROW) {
		const struct interval_process process = {
			.pid = sqlite3_column_int(row, 0),
			.observed_ns = sqlite3_column_double(row, 1),
			.overhead_ns = sqlite3_column_double(row, 2),
			.rss_bytes = sqlite3_column_int64(row, 3),
			.swap_bytes = sqlite3_column_int64(row, 4),
		};

		g_array_append_val(processes, process);
	}
	sqlite3_finalize(row);
	return processes;
}

GArray *interval_process_tolls(const struct interval *interval)
{
	sqlite3_stmt *row = prepare(
		interval->database,
		"WITH paid AS (SELECT t.pid, t.toll, t.time_ns, t.count, t.bytes"
		" FROM temp.process_toll t JOIN temp.toll_kind k"
		" ON k.toll = t.toll WHERE k.not_captured IS NULL)"
		" SELECT * FROM paid UNION ALL"
		" SELECT o.pid, 'compute', MAX(0.0, o.observed_ns - COALESCE((SELECT SUM(time_ns)"
		" FROM paid p WHERE p.pid = o.pid), 0.0)), 0, 0 FROM temp.process_observed o%s",
		"");
	GArray *tolls = g_array_new(FALSE, FALSE, sizeof(struct interval_process_toll));

	while (row && sqlite3_step(row) == SQLITE_ROW) {
		const struct interval_process_toll toll = {
			.pid = sqlite3_column_int(row, 0),
			.name = interned(row, 1),
			.time_ns = sqlite3_column_double(row, 2),
			.count = sqlite3_column_double(row, 3),
			.bytes = sqlite3_column_double(row, 4),
		};

		g_array_append_val(tolls, toll);
	}
	sqlite3_finalize(row);
	return tolls;
}

const char *interval_reader_error(const struct interval_reader *reader)
{
	return reader->error ? reader->error : "out of memory";
}
