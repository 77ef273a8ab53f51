// SPDX-License-Identifier: GPL-2.0
#include "session/hold_reuse.h"

#include <errno.h>
#include <glib.h>
#include <sqlite3.h>

#include "ledger/trim_reuse.h"
#include "recording/recording.h"

/* What is used again is asked of so long a time; then of what would be given back now. */
#define REUSE_NS (60ULL * 1000000000)

#define ARRAYS                                                                             \
	" FROM json_each(CASE WHEN json_valid(?1) THEN ?1 ELSE '{}' END, '$.processes') p" \
	" WHERE json_type(p.value, '$.pid') = 'integer'"                                   \
	" AND json_type(p.value, '$.malloc.trim_ranges') = 'array'"

/* Columns: process, ranges that were left out, ranges. */
static const char processes_query[] = "SELECT json_extract(p.value, '$.pid'),"
				      " json_extract(p.value, '$.malloc.trim_ranges_left'),"
				      " json_extract(p.value, '$.malloc.trim_ranges')" ARRAYS;
static const char ranges_query[] =
	"SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'),"
	" json_extract(value, '$[2]') FROM json_each(?1)";

/* 0 or -errno. */
static int read_ranges(sqlite3 *database, const char *json, GArray *ranges)
{
	sqlite3_stmt *row = NULL;
	uint64_t last = 0;
	int result = sqlite3_prepare_v2(database, ranges_query, -1, &row, NULL);

	if (result == SQLITE_OK)
		result = sqlite3_bind_text(row, 1, json, -1, SQLITE_STATIC);
	while ((result == SQLITE_OK || result == SQLITE_ROW) &&
	       (result = sqlite3_step(row)) == SQLITE_ROW) {
		const struct free_range range = {
			.start = (uint64_t)sqlite3_column_int64(row, 0),
			.end = (uint64_t)sqlite3_column_int64(row, 1),
			.resident = sqlite3_column_int(row, 2),
		};

		if (range.start < last || range.end <= range.start)
			continue;
		g_array_append_val(ranges, range);
		last = range.end;
	}
	sqlite3_finalize(row);
	return result == SQLITE_DONE ? 0 : -EIO;
}

static gint by_start(gconstpointer a, gconstpointer b)
{
	const struct free_range *left = a, *right = b;

	return left->start < right->start ? -1 : left->start > right->start;
}

/* What is in no heap is free, too: a heap that became shorter has given it back. */
static void add_outside(GArray *ranges, const GArray *heaps)
{
	uint64_t at = 0;
	guint i;

	for (i = 0; i <= heaps->len; i++) {
		const struct free_range *heap =
			i < heaps->len ? &g_array_index(heaps, struct free_range, i) : NULL;
		const struct free_range gap = { .start = at,
						.end = heap ? heap->start : UINT64_MAX };

		if (gap.end > gap.start)
			g_array_append_val(ranges, gap);
		at = heap ? heap->end : UINT64_MAX;
	}
	g_array_sort(ranges, by_start);
}

static int take(struct recording *recording, uint64_t look, pid_t pid, const GArray *ranges,
		bool whole, struct trim_reuse *reuse, uint64_t now_ns)
{
	const struct free_range *first = (const void *)ranges->data;
	struct trim_reused reused = { 0 };
	bool begun;
	int err = 0;

	if (whole)
		trim_reuse_look(reuse, pid, first, ranges->len);
	begun = trim_reuse_get(reuse, pid, &reused);
	if (begun) {
		const struct hold_reuse_fact fact = {
			.pid = pid,
			.since_ns = reused.since_ns,
			.seconds = (double)(now_ns - reused.since_ns) / 1e9,
			.pages = reused.pages,
			.used_pages = reused.used,
		};

		err = recording_hold_reuse(recording, look, &fact);
	}
	if (!begun || now_ns - reused.since_ns >= REUSE_NS)
		trim_reuse_begin(reuse, pid, now_ns, first, ranges->len);
	return err;
}

int hold_reuse_write(struct recording *recording, uint64_t look, const char *json,
		     struct trim_reuse *reuse, uint64_t now_ns)
{
	sqlite3 *database = recording_database(recording);
	sqlite3_stmt *row = NULL;
	int result = sqlite3_prepare_v2(database, processes_query, -1, &row, NULL), err = 0;

	if (result == SQLITE_OK)
		result = sqlite3_bind_text(row, 1, json, -1, SQLITE_STATIC);
	while (!err && (result == SQLITE_OK || result == SQLITE_ROW) &&
	       (result = sqlite3_step(row)) == SQLITE_ROW) {
		g_autoptr(GArray) ranges = g_array_new(FALSE, FALSE, sizeof(struct free_range));
		g_autoptr(GArray) heaps = g_array_new(FALSE, FALSE, sizeof(struct free_range));

		err = read_ranges(database, (const char *)sqlite3_column_text(row, 2), ranges);
		if (!err)
			err = read_ranges(database, (const char *)sqlite3_column_text(row, 3),
					  heaps);
		add_outside(ranges, heaps);
		if (!err)
			err = take(recording, look, sqlite3_column_int(row, 0), ranges,
				   sqlite3_column_int(row, 1), reuse, now_ns);
	}
	sqlite3_finalize(row);
	return err ? err : result == SQLITE_DONE ? 0 : -EIO;
}
