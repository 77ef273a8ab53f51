// SPDX-License-Identifier: GPL-2.0
#include "report/report_trust.h"

#include <glib.h>

#include "base/text.h"

static void print_checks(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT REPLACE(name, '_', ' '), ours, kernel, ok FROM temp.checks"
				 " ORDER BY position");
	char ours[32], kernel[32], *name;

	page_heading(page, "CHECKS");
	while (page_next(page, row)) {
		name = page_column(row, 0);
		format_count(ours, sizeof(ours), sqlite3_column_int64(row, 1));
		format_count(kernel, sizeof(kernel), sqlite3_column_int64(row, 2));
		fprintf(page->out, "  %-19s ours %13s  the kernel's %13s  %s\n", name, ours, kernel,
			sqlite3_column_int(row, 3) ? "ok" : "DIFFER");
		g_free(name);
	}
}

static void print_notes(struct page *page)
{
	page_list(page, "NOTES", "  - ", "SELECT text FROM temp.note ORDER BY position, text");
}

static void print_stacks(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT COALESCE(SUM(CASE stopped WHEN '' THEN share END), 0.0),"
				 " COALESCE(group_concat(CASE WHEN stopped <> '' AND share >= 0.001"
				 " THEN printf('%s %.1f %%', stopped, 100 * share) END, ', '), ''),"
				 " COUNT(*) FROM (SELECT * FROM temp.stack_quality"
				 " ORDER BY share DESC)");
	char share[32], *stopped, *line;

	while (page_next(page, row)) {
		if (!sqlite3_column_int(row, 2))
			continue;
		format_share(share, sizeof(share), sqlite3_column_double(row, 0));
		stopped = page_column(row, 1);
		line = g_strdup_printf("%s of the sites' time has whole stacks%s%s.", share,
				       *stopped ? "; what ended the others: " : "", stopped);
		fputc('\n', page->out);
		page_wrap(page, "Stacks: ", 10, line);
		g_free(line);
		g_free(stopped);
	}
}

/* "; malloc was watched 4.8 %, free 4.8 % of the time", or nothing. */
static char *duty_cycle(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page,
			   "SELECT CASE call WHEN 'read_other' THEN 'read() of sockets'"
			   " WHEN 'syscall' THEN 'mapping calls and reads' ELSE call END, share"
			   " FROM temp.duty_cycle WHERE share < 1 AND (call IN ('read_other',"
			   " 'syscall') OR call IN (SELECT call FROM main.call))"
			   " ORDER BY call");
	GString *said = g_string_new(NULL);
	char *call;

	while (page_next(page, row)) {
		call = page_column(row, 0);
		g_string_append_printf(said, "%s%s %.1f %%", said->len ? ", " : "; watched: ", call,
				       100 * sqlite3_column_double(row, 1));
		g_free(call);
	}
	if (said->len)
		g_string_append(said, " of the time");
	return g_string_free(said, FALSE);
}

/* " (+- 0.3, by CPU samples)". */
static char *overhead_error(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT printf(' (+- %.1f, by %s)', error_pct, CASE source"
				 " WHEN 'samples' THEN 'CPU samples' ELSE 'calibrated prices' END)"
				 " FROM temp.overhead_error");
	char *said = NULL;

	while (page_next(page, row))
		said = page_column(row, 0);
	return said ? said : g_strdup("");
}

/* A sentence for each probe whose price does not differ from zero by more than its error, or "". */
static char *untold_prices(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT what, probe, hits, hit_ns, error_ns, most_ns FROM"
				 " temp.price_untold ORDER BY most_ns DESC, probe");
	char hits[32], most[32], *what, *probe;
	GString *said = g_string_new(NULL);

	while (page_next(page, row)) {
		what = page_column(row, 0);
		probe = page_column(row, 1);
		format_count(hits, sizeof(hits), sqlite3_column_int64(row, 2));
		format_time(most, sizeof(most), sqlite3_column_double(row, 5));
		g_string_append_printf(
			said,
			" The price of %s (%s) does not differ measurably from"
			" zero here, %.0f +- %.0f ns a hit: %s hits took at most %s.",
			what, probe, sqlite3_column_double(row, 3), sqlite3_column_double(row, 4),
			hits, most);
		g_free(probe);
		g_free(what);
	}
	return g_string_free(said, FALSE);
}

/*
 * What following a command takes beside the probes: its processes stand still, and use no CPU time.
 */
static void add_held(GString *line, sqlite3_stmt *row, int column)
{
	char held[32];

	if (sqlite3_column_type(row, column) == SQLITE_NULL)
		return;
	format_time(held, sizeof(held), sqlite3_column_double(row, column));
	g_string_append_printf(line,
			       " At their starts and ends the command's processes were held for"
			       " at least %s in all, which is in no figure.",
			       held);
}

static void print_overhead(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT o.estimated_pct, o.hits, o.limit_pct, o.held_ns,"
				 " w.text FROM temp.overhead o JOIN temp.overhead_why w");
	char hits[32], limit[128] = "no limit", *duty, *error, *untold;
	GString *line;

	while (page_next(page, row)) {
		g_autofree char *why = page_column(row, 4);

		format_count(hits, sizeof(hits), sqlite3_column_int64(row, 1));
		if (sqlite3_column_type(row, 2) != SQLITE_NULL)
			snprintf(limit, sizeof(limit), "limit %g %%%s%s",
				 sqlite3_column_double(row, 2), *why ? ", " : "", why);
		duty = duty_cycle(page);
		error = overhead_error(page);
		untold = untold_prices(page);
		line = g_string_new(NULL);
		g_string_printf(
			line,
			"%.1f %% of the target's time%s, %s probe hits (%s)%s; it is taken out of"
			" the figures above.%s",
			sqlite3_column_double(row, 0), error, hits, limit, duty, untold);
		add_held(line, row, 3);
		fputc('\n', page->out);
		page_wrap(page, "Overhead: ", 10, line->str);
		g_string_free(line, TRUE);
		g_free(untold);
		g_free(error);
		g_free(duty);
	}
}

/* What ended stacks is said where their quality is. */
#define LOSSES                                                                           \
	" FROM temp.losses WHERE count > 0 AND (name NOT LIKE 'unwind!_%' ESCAPE '!' OR" \
	" name = 'unwind_full') AND "

/* Those that may change the verdict, with what helps. */
static void print_losses_beyond(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT name, count, meaning, remedy, share, measure" LOSSES
				 "exceeds ORDER BY share DESC, name");
	char count[32], *name, *meaning, *remedy, *prefix, *line;

	while (page_next(page, row)) {
		name = page_column(row, 0);
		meaning = page_column(row, 2);
		remedy = page_column(row, 3);
		format_count(count, sizeof(count), sqlite3_column_int64(row, 1));
		prefix = g_strdup_printf("!!! %s: ", name);
		line = sqlite3_column_type(row, 5) == SQLITE_NULL ?
			       g_strdup_printf("%s %s (%s)", count, meaning, remedy) :
			       g_strdup_printf("%s, %.2f %% of its kind: %s (%s)", count,
					       100 * sqlite3_column_double(row, 4), meaning,
					       remedy);
		fputs(page_red(page), page->out);
		page_wrap(page, prefix, 4, line);
		fputs(page_plain(page), page->out);
		g_free(line);
		g_free(prefix);
		g_free(remedy);
		g_free(meaning);
		g_free(name);
	}
}

static void print_small_losses(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT name, count, meaning, share, measure" LOSSES
				 "NOT exceeds ORDER BY measure IS NULL, share DESC, name");
	g_autoptr(GString) line = g_string_new("");
	char count[32];

	while (page_next(page, row)) {
		g_autofree char *name = page_column(row, 0), *meaning = page_column(row, 2);

		format_count(count, sizeof(count), sqlite3_column_int64(row, 1));
		g_string_append_printf(line, "%s%s %s (", line->len ? ", " : "", name, count);
		if (sqlite3_column_type(row, 4) != SQLITE_NULL)
			g_string_append_printf(
				line, "%.2f %% of its kind: ", 100 * sqlite3_column_double(row, 3));
		g_string_append_printf(line, "%s)", meaning);
	}
	if (!line->len)
		return;
	g_string_append(line, ".");
	fputc('\n', page->out);
	page_wrap(page, "Lost, within the limit: ", 10, line->str);
}

void print_trust(struct page *page)
{
	print_checks(page);
	print_notes(page);
	print_stacks(page);
	print_overhead(page);
	print_small_losses(page);
	print_losses_beyond(page);
}
