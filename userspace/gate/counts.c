// SPDX-License-Identifier: GPL-2.0
#include "gate/counts.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>

#include "recording/recording.h"
#include "report/report_page.h"
#include "report/report_views.h"

static void site_free(void *data)
{
	struct count_site *site = data;

	g_free(site->site);
	g_free(site->place);
	g_free(site->call);
	g_free(site->function);
	g_free(site->file);
	g_free(site->caller);
	g_free(site);
}

void counts_free(struct counts *counts)
{
	guint i;

	if (!counts)
		return;
	for (i = 0; i < counts->length; i++) {
		g_clear_pointer(&counts->of[i].sites, g_hash_table_unref);
		g_free(counts->of[i].reason);
		g_free(counts->of[i].missing);
	}
	g_free(counts->of);
	g_free(counts->path);
	g_free(counts->command);
	g_free(counts);
}

/* As it is, as names are compared: who prints it escapes it. */
static char *column(sqlite3_stmt *row, int index)
{
	const char *text = (const char *)sqlite3_column_text(row, index);

	return g_strdup(text ? text : "");
}

/* The few views that are asked, each once: others take their time, and say nothing of counts. */
static int make_views(sqlite3 *database)
{
	static const char *const names[] = { "losses",	     "toll_kind",   "library_frame",
					     "system_frame", "frame_line",  "stack_line",
					     "exact_count",  "count_doubt", "place_doubt",
					     "stack_site" };
	int err = 0;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(names) && !err; i++)
		err = report_view_make(database, names[i], strcmp(names[i], "stack_line") != 0);
	return err;
}

/* A list of SQL with the tolls of a bound: names of our own. */
static char *tolls_of(const struct bound *bound)
{
	GString *list = g_string_new("(");
	size_t i;

	for (i = 0; i < gate_toll_count; i++)
		if (bound->scope == GATE_ALL_FAULTS ?
			    (gate_tolls[i].flags & GATE_FAULT) :
			    !strcmp(bound->of, bound->scope == GATE_FAMILY ? gate_tolls[i].family :
									     gate_tolls[i].name))
			g_string_append_printf(list, "%s'%s'", list->len > 1 ? ", " : "",
					       gate_tolls[i].name);
	return g_string_free(g_string_append_c(list, ')'), FALSE);
}

/* Nothing can go to swap where there is none, which leaves no count out of a sum. */
static int read_missing(struct page *page, const struct bound *bound, const char *tolls,
			struct count *count)
{
	g_autofree char *sql = g_strdup_printf(
		"SELECT not_captured FROM temp.toll_kind WHERE toll IN %s AND"
		" not_captured IS NOT NULL AND toll NOT IN ('zero.app', 'copy.app',"
		" 'compute') AND (%d OR family <> 'swap') ORDER BY position LIMIT 1",
		tolls, bound->scope == GATE_TOLL);
	sqlite3_stmt *row = page_query(page, sql);

	while (page_next(page, row))
		count->missing = column(row, 0);
	return page->err;
}

static void add_doubt(sqlite3_stmt *row, const struct bound *bound, struct count *count)
{
	const bool unknown = sqlite3_column_int(row, 2);

	/* That a fault's class is not known does not change how many there are. */
	if (bound->scope == GATE_ALL_FAULTS && bound->metric == GATE_COUNT && !bound->pattern &&
	    sqlite3_column_int(row, 3))
		return;
	if (!count->reason)
		count->reason = column(row, 0);
	/* How many bytes those events had nobody knows. */
	if (unknown || bound->metric == GATE_BYTES)
		count->lost = INFINITY;
	else
		count->lost += sqlite3_column_double(row, 1);
}

static int read_doubt(struct page *page, const struct bound *bound, const char *tolls,
		      struct count *count)
{
	/* A reason is there once for all tolls of a family. */
	g_autofree char *sql = g_strdup_printf(
		"SELECT reason, lost, MAX(lost IS NULL), MIN(counted) FROM (SELECT toll, reason, lost,"
		" counted FROM temp.count_doubt UNION ALL SELECT toll, reason, lost, 0 FROM"
		" temp.place_doubt WHERE %d) WHERE toll IN %s GROUP BY reason ORDER BY 3 DESC,"
		" lost DESC",
		bound->pattern != NULL, tolls);
	sqlite3_stmt *row = page_query(page, sql);

	while (page_next(page, row))
		add_doubt(row, bound, count);
	return page->err;
}

static void add_site(sqlite3_stmt *row, struct count *count)
{
	struct count_site *site = g_new0(struct count_site, 1);

	site->site = column(row, 0);
	site->place = column(row, 1);
	site->call = column(row, 2);
	site->function = column(row, 3);
	site->file = column(row, 4);
	site->line = sqlite3_column_int(row, 5);
	if (sqlite3_column_type(row, 6) != SQLITE_NULL)
		site->caller = column(row, 6);
	site->value = sqlite3_column_double(row, 7);
	count->value += site->value;
	g_hash_table_insert(count->sites, site->site, site);
}

/*
 * A site of faults is the code that touched the page: whether the allocator was watched, too, does
 * not matter. A pattern is SQLite's GLOB, as everywhere in the views: of a function, a file or a
 * module by their whole name or the end of their path.
 */
static int read_sites(struct page *page, const struct bound *bound, const char *tolls,
		      struct count *count)
{
	static const char matched[] =
		" AND EXISTS (SELECT 1 FROM main.stack_frame k JOIN main.frame f ON f.frame_id ="
		" k.frame_id WHERE k.stack_id IN (c.stack_id, c.block_stack) AND (f.function GLOB ?1"
		" OR f.file GLOB ?1 OR f.file GLOB '*/' || ?1 OR f.module GLOB ?1"
		" OR f.module GLOB '*/' || ?1))";
	g_autofree char *sql = g_strdup_printf(
		"SELECT CASE WHEN c.fault THEN '' ELSE c.call END || ' ' || COALESCE(s.site, c.area)"
		" AS known_as,"
		" COALESCE(s.place, NULLIF(c.area, ''), NULLIF(c.call, ''), '?'), c.call, s.function,"
		" s.file, s.line, s.caller, SUM(c.%s) FROM temp.exact_count c LEFT JOIN"
		" temp.stack_site s ON s.stack_id = c.stack_id WHERE %s c.toll IN %s%s"
		" GROUP BY known_as",
		bound->metric == GATE_BYTES ? "bytes" : "count",
		bound->scope == GATE_ALL_FAULTS ? "c.fault AND" : "", tolls,
		bound->pattern ? matched : "");
	sqlite3_stmt *row = page_query(page, sql);

	if (row && bound->pattern)
		sqlite3_bind_text(row, 1, bound->pattern, -1, SQLITE_STATIC);
	while (page_next(page, row))
		add_site(row, count);
	return page->err;
}

static int read_bound(struct page *page, const struct bound *bound, struct count *count)
{
	g_autofree char *tolls = tolls_of(bound);
	int err = 0;

	count->sites = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, site_free);
	if (bound->metric == GATE_TIME) {
		count->value = NAN;
		return 0;
	}
	err = read_missing(page, bound, tolls, count);
	if (!err)
		err = read_doubt(page, bound, tolls, count);
	if (!err)
		err = read_sites(page, bound, tolls, count);
	return err;
}

static int read_command(struct page *page, struct counts *counts)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT value FROM main.meta WHERE key = 'target_words'");

	while (page_next(page, row))
		counts->command = column(row, 0);
	return page->err;
}

struct counts *counts_read(const char *path, const struct bounds *budget)
{
	struct counts *counts = NULL;
	sqlite3 *database = recording_open(path);
	struct page page = { .database = database };
	int err;
	guint i;

	if (!database)
		return NULL;
	counts = g_new0(struct counts, 1);
	counts->path = g_strdup(path);
	counts->length = budget->list->len;
	counts->of = g_new0(struct count, counts->length);
	err = make_views(database);
	if (!err)
		err = read_command(&page, counts);
	for (i = 0; !err && i < counts->length; i++)
		err = read_bound(&page, g_ptr_array_index(budget->list, i), &counts->of[i]);
	sqlite3_close(database);
	if (err)
		g_clear_pointer(&counts, counts_free);
	return counts;
}
