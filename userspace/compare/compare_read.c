// SPDX-License-Identifier: GPL-2.0
/*
 * compare_read.c: what a comparison takes of a recording: tolls and families from its views and,
 * where each side has one recording, how they were spread over its slices (timeline.sql, which the
 * Python package reads, too).
 */
#include "compare/compare_run.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>

#include "base/message.h"
#include "recording/recording.h"
#include "report/report.h"
#include "report/report_views.h"
#include "timeline_sql.h"

/* As in the Python package: more blocks than this say no more. */
#define BLOCKS "30"

static sqlite3_stmt *query(sqlite3 *database, const char *sql)
{
	sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK)
		return statement;
	report_complain(database, sqlite3_errmsg(database));
	return NULL;
}

static void add(GArray *array, double value)
{
	g_array_append_val(array, value);
}

/* Tolls, families and their total, per divisor. */
static int read_tolls(sqlite3 *database, struct comparison *comparison, enum compare_side side,
		      double divisor)
{
	sqlite3_stmt *row =
		query(database, "SELECT toll, family, time_ns, count, bytes FROM temp.toll"
				" WHERE time_ns IS NOT NULL ORDER BY position");
	double total = 0;

	if (!row)
		return -EIO;
	while (sqlite3_step(row) == SQLITE_ROW) {
		struct figure *figure = comparison_figure(comparison, COMPARE_TOLL,
							  (const char *)sqlite3_column_text(row, 0),
							  (const char *)sqlite3_column_text(row, 1),
							  COMPARE_SECONDS);

		total += sqlite3_column_double(row, 2) / 1e9;
		add(figure->values[side], sqlite3_column_double(row, 2) / 1e9 / divisor);
		figure->count[side] += sqlite3_column_double(row, 3) / divisor;
		figure->bytes[side] += sqlite3_column_double(row, 4) / divisor;
	}
	sqlite3_finalize(row);
	add(comparison_figure(comparison, COMPARE_TOTAL, "observed", NULL, COMPARE_SECONDS)
		    ->values[side],
	    total / divisor);
	row = query(database, "SELECT family, SUM(time_ns) FROM temp.toll WHERE time_ns IS NOT NULL"
			      " GROUP BY family ORDER BY MIN(position)");
	while (row && sqlite3_step(row) == SQLITE_ROW)
		add(comparison_figure(comparison, COMPARE_FAMILY,
				      (const char *)sqlite3_column_text(row, 0), NULL,
				      COMPARE_SECONDS)
			    ->values[side],
		    sqlite3_column_double(row, 1) / 1e9 / divisor);
	sqlite3_finalize(row);
	return row ? 0 : -EIO;
}

/* One figure's seconds by block. */
static int read_blocks(sqlite3 *database, struct figure *figure, enum compare_side side)
{
	static const char sql[] =
		"SELECT COALESCE(SUM(CASE WHEN (?2 = 0) OR (?2 = 2 AND t.toll = ?1)"
		" OR (?2 = 3 AND k.family = ?1) THEN t.time_ns END), 0) / 1e9"
		" FROM temp.compare_block b LEFT JOIN temp.memtoll_timeline t ON t.slice = b.slice"
		" LEFT JOIN temp.toll_kind k ON k.toll = t.toll GROUP BY b.block ORDER BY b.block";
	sqlite3_stmt *row = query(database, sql);

	if (!row)
		return -EIO;
	sqlite3_bind_text(row, 1, figure->name, -1, SQLITE_STATIC);
	sqlite3_bind_int(row, 2, figure->kind);
	while (sqlite3_step(row) == SQLITE_ROW)
		add(figure->blocks[side], sqlite3_column_double(row, 0));
	sqlite3_finalize(row);
	return 0;
}

static int read_timeline(sqlite3 *database, struct comparison *comparison, enum compare_side side)
{
	static const char blocks[] =
		"CREATE TEMP TABLE compare_block AS SELECT slice, (end_ns - start_ns) / 1e9 AS seconds,"
		" NTILE((SELECT MAX(1, MIN(" BLOCKS ", COUNT(*))) FROM main.slice))"
		" OVER (ORDER BY slice) AS block FROM main.slice";
	sqlite3_stmt *row;
	guint i;

	if (sqlite3_exec(database, timeline_sql, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(database, blocks, NULL, NULL, NULL) != SQLITE_OK) {
		report_complain(database, sqlite3_errmsg(database));
		return -EIO;
	}
	row = query(database,
		    "SELECT SUM(seconds) FROM temp.compare_block GROUP BY block ORDER BY block");
	if (!row)
		return -EIO;
	while (sqlite3_step(row) == SQLITE_ROW)
		add(comparison->block_s[side], sqlite3_column_double(row, 0));
	sqlite3_finalize(row);
	for (i = 0; i < comparison->figures->len; i++) {
		struct figure *figure = g_ptr_array_index(comparison->figures, i);

		if (figure->kind != COMPARE_RUN && read_blocks(database, figure, side))
			return -EIO;
	}
	return 0;
}

int compare_read(const char *path, const struct compare_plan *plan, enum compare_side side,
		 struct comparison *comparison, double *divisor, char **losses)
{
	sqlite3 *database = recording_open(path);
	sqlite3_stmt *row;
	int err = -EIO;

	if (!database)
		return -EINVAL;
	if (report_views_make(database, "family", 0))
		goto out;
	*divisor = 1;
	row = query(database, "SELECT duration_ns / 1e9 FROM temp.observed");
	if (row && sqlite3_step(row) == SQLITE_ROW && plan->tracing.duration_ns)
		*divisor = sqlite3_column_double(row, 0);
	sqlite3_finalize(row);
	if (*divisor <= 0) {
		message("%s cannot be compared: no time was recorded in it", path);
		goto out;
	}
	err = read_tolls(database, comparison, side, *divisor);
	if (!err && plan->runs == 1)
		err = read_timeline(database, comparison, side);
	if (!*losses)
		report_losses_exceed(database, losses);
out:
	sqlite3_close(database);
	return err;
}
