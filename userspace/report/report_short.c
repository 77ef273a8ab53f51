// SPDX-License-Identifier: GPL-2.0
/*
 * report_short.c: what a recording says on one screen: how the time is shared out, the verdict, what
 * to do, the sites where memory costs most, and whether the figures can be trusted. The tables are
 * report_text.c's.
 */
#include "report/report.h"

#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/report_hold.h"
#include "report/report_page.h"
#include "report/report_views.h"

#define BAR_COLUMNS 50
#define ADVICE_LINES 6
#define FINDINGS_MORE 2 /* beside the first */
#define SITES_LEAST 2
#define SITES_MOST 5
#define SITE_COLUMNS 44 /* before the places */

/*
 * ", exited 7": how the command ended, where that is not as it should. The status is a shell's: 128
 * and more is a signal, if there is one of that number: 255 is what Perl and ssh fail with.
 */
static char *ending(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'exit_status'"
				 " AND value <> '0'");
	char *said = NULL;
	int status;

	while (page_next(page, row)) {
		status = sqlite3_column_int(row, 0);
		g_free(said);
		said = status > 128 && status - 128 < NSIG ?
			       g_strdup_printf(", ended by signal %d", status - 128) :
			       g_strdup_printf(", exited %d", status);
	}
	return said ? said : g_strdup("");
}

static void print_head(struct page *page)
{
	sqlite3_stmt *row = page_query(
		page,
		"SELECT t.command, (SELECT pid FROM process ORDER BY role <> 'target', start_ns, pid"
		" LIMIT 1), t.processes, t.duration_ns, t.complete, t.end_reason = 'size limit',"
		" COALESCE((SELECT ' on ' || value FROM meta WHERE key = 'host'), ''),"
		" COALESCE((SELECT ', ' || strftime('%Y-%m-%d %H:%M:%S UTC', value / 1000000000,"
		" 'unixepoch') FROM meta WHERE key = 'start_realtime_ns'), ''), CASE WHEN EXISTS"
		" (SELECT 1 FROM meta WHERE key = 'container') THEN '' ELSE"
		" COALESCE(' in ' || t.container, '') END,"
		" EXISTS (SELECT 1 FROM meta WHERE key = 'redacted') FROM temp.target t");
	char duration[32], *command, *end, *host, *when, *more;
	g_autofree char *rest = NULL;

	while (page_next(page, row)) {
		g_autofree char *container = page_column(row, 8);

		command = page_column(row, 0);
		host = page_column(row, 6);
		when = page_column(row, 7);
		end = ending(page);
		format_time(duration, sizeof(duration), sqlite3_column_double(row, 3));
		more = sqlite3_column_int(row, 2) > 1 ?
			       g_strdup_printf(" and %d more", sqlite3_column_int(row, 2) - 1) :
			       g_strdup("");
		g_free(rest);
		rest = g_strdup_printf(" (%d)%s%s%s%s, %s%s", sqlite3_column_int(row, 1), more,
				       container, host, when, duration, end);
		text_cut(command, MAX(16, page_width(page) - g_utf8_strlen(rest, -1)));
		fprintf(page->out, "%s%s%s%s\n", page_bold(page), command, page_plain(page), rest);
		if (!sqlite3_column_int(row, 4))
			fprintf(page->out, "%s!!! INCOMPLETE: the recording was not finished.%s\n",
				page_red(page), page_plain(page));
		if (sqlite3_column_int(row, 5))
			fputs("Ended by --max-size, its limit; whole up to there.\n", page->out);
		if (sqlite3_column_int(row, 9))
			fputs("Redacted: names of files and programs, and addresses, are pseudonyms.\n",
			      page->out);
		g_free(more);
		g_free(end);
		g_free(when);
		g_free(host);
		g_free(command);
	}
}

/* "ZEROING 75 % (68-84)   mapping 24 %   compute 1 %", and a bar of the first where it is memory. */
static void print_shares(struct page *page)
{
	sqlite3_stmt *row = page_query(
		page,
		"SELECT f.family, f.share, v.low, v.high, f.family = v.dominant, o.observed_ns,"
		" (SELECT colour FROM temp.toll_word w WHERE w.toll = f.main_toll) FROM"
		" temp.family f, temp.verdict v, temp.observed o WHERE f.share >= 0.005"
		" AND o.observed_ns > 0 ORDER BY f.family <> v.dominant, f.rank");
	g_autoptr(GString) line = g_string_new(NULL);
	char observed[32] = "", ink[PAGE_INK_SIZE] = "", *family;
	bool has_bar = false, first = true;
	int filled = 0;

	while (page_next(page, row)) {
		g_autofree char *word = NULL;
		bool dominates = sqlite3_column_int(row, 4);

		family = page_column(row, 0);
		if (dominates) {
			g_autofree char *capital = g_ascii_strup(family, -1);

			word = g_strdup_printf("%s %.0f %% (%.0f-%.0f)", capital,
					       100 * sqlite3_column_double(row, 1),
					       100 * sqlite3_column_double(row, 2),
					       100 * sqlite3_column_double(row, 3));
			has_bar = strcmp(family, "compute") != 0;
			page_ink(page, (const char *)sqlite3_column_text(row, 6), ink);
			filled = (int)(BAR_COLUMNS * sqlite3_column_double(row, 1) + 0.5);
		} else {
			word = g_strdup_printf("%s %.0f %%", family,
					       100 * sqlite3_column_double(row, 1));
		}
		format_time(observed, sizeof(observed), sqlite3_column_double(row, 5));
		if ((long)(line->len + strlen(word)) + 3 <= page_width(page))
			g_string_append_printf(line, "%s%s%s%s", first ? "" : "   ",
					       dominates ? page_bold(page) : "", word,
					       dominates ? page_plain(page) : "");
		first = false;
		g_free(family);
	}
	if (!first)
		fprintf(page->out, "%s\n", line->str);
	if (has_bar) {
		fputs(ink, page->out);
		for (int i = 0; i < BAR_COLUMNS; i++) {
			if (i == filled)
				fputs(page_plain(page), page->out);
			fputc(i < filled ? '#' : '.', page->out);
		}
		fprintf(page->out, "%s   of %s observed\n", page_plain(page), observed);
	}
}

static void print_said(struct page *page)
{
	sqlite3_stmt *row = page_query(page, "SELECT said FROM temp.verdict");
	char *text;

	while (page_next(page, row)) {
		text = page_column(row, 0);
		page_wrap(page, "", 0, text);
		g_free(text);
	}
}

static int lines_of(const char *text)
{
	int lines = 0;

	while ((text = strchr(text, '\n'))) {
		lines++;
		text++;
	}
	return lines;
}

/* Whole sentences of text, as many as make no more than so many lines, and one at least. */
static void print_sentences(struct page *page, const char *prefix, int indent, const char *text,
			    int most)
{
	const char *end = text, *next;

	do {
		g_autofree char *part = NULL, *printed = NULL;
		size_t size;
		FILE *memory;

		next = strstr(end, ". ");
		next = next ? next + 1 : end + strlen(end);
		part = g_strndup(text, next - text);
		memory = open_memstream(&printed, &size);
		if (!memory)
			break;
		text_wrap_to(memory, page_width(page), prefix, indent, part);
		fclose(memory);
		if (end != text && lines_of(printed) > most)
			break;
		end = next;
	} while (*end);
	{
		g_autofree char *part = g_strndup(text, end - text);

		page_wrap(page, prefix, indent, part);
	}
}

/* "" where it rounds to nothing: what shortens a single call, and not the whole. Freed by the caller. */
static char *saving(double gain)
{
	return gain < 0.005 ? g_strdup("") : g_strdup_printf("saves at most %.0f %%", 100 * gain);
}

/* Of the first finding everything, of others their names. */
static void print_findings(struct page *page)
{
	sqlite3_stmt *row = page_query(
		page,
		"SELECT f.code, f.title, f.text, COALESCE(f.try, ''), f.cost, f.gain, COUNT(*) OVER (),"
		" m.unseen, (SELECT dominant FROM temp.verdict) FROM temp.finding f, temp.measure m"
		" ORDER BY f.position");
	int shown = 0, all = 0;

	while (page_next(page, row)) {
		g_autofree char *code = page_column(row, 0), *title = page_column(row, 1);
		g_autofree char *text = page_column(row, 2), *try = page_column(row, 3);
		g_autofree char *cost = page_column(row, 4), *family = page_column(row, 8);
		g_autofree char *saves = saving(sqlite3_column_double(row, 5));

		all = sqlite3_column_int(row, 6);
		if (!strcmp(code, "none")) {
			if (sqlite3_column_int(row, 7) ||
			    (strcmp(family, "compute") && strcmp(family, "none")))
				page_wrap(page, "DO   ", 5, text);
			continue;
		}
		if (shown++ > FINDINGS_MORE)
			continue;
		if (shown > 1) {
			g_autofree char *line =
				g_strdup_printf("%s%s%s (memtoll explain %s)", title,
						*saves ? ", " : "", saves, code);

			page_wrap(page, "  or ", 5, line);
			continue;
		}
		print_sentences(page, "DO   ", 5, text, ADVICE_LINES);
		if (*saves)
			fprintf(page->out, "     %s of the observed time\n", saves);
		if (*try)
			fprintf(page->out, "     try: %s\n", try);
		if (*cost)
			print_sentences(page, "     price: ", 12, cost, 1);
	}
	if (all > shown && shown)
		fprintf(page->out, "  and %d more\n", all - shown);
}

/* "pagez.c:27" of "pagez.c:27 (change_pages)". */
static void leave_function(char *place)
{
	char *bracket = strstr(place, " (");

	if (bracket && strchr(place, ':'))
		*bracket = '\0';
}

static char *places(struct page *page, const char *area, char *allocated, char *touched)
{
	const char *from = *allocated ? allocated : area;
	long room = MAX(8, page_width(page) - SITE_COLUMNS);
	char *both;

	both = g_strdup_printf("%s%s%s", from, *touched ? " -> " : "", touched);
	if (g_utf8_strlen(both, -1) > room) {
		g_free(both);
		leave_function(allocated);
		leave_function(touched);
		if (*from && *touched &&
		    g_utf8_strlen(from, -1) + g_utf8_strlen(touched, -1) + 4 > room)
			text_cut(*allocated ? allocated : (char *)area,
				 MAX(8, room - 4 - g_utf8_strlen(touched, -1)));
		both = g_strdup_printf("%s%s%s", from, *touched ? " -> " : "", touched);
		text_cut(both, room);
	}
	return both;
}

/*
 * Computing is no site of memory: its places are shown where they are asked for, or where there is
 * nothing else to show.
 */
static void print_site_rows(struct page *page, const struct report_options *options, int rows)
{
	sqlite3_stmt *row = page_query(
		page, "SELECT s.toll, s.call, s.time_ns, s.share, s.area, s.allocated, s.touched"
		      " FROM temp.site_short s WHERE (?2 OR s.toll NOT IN ('compute', 'copy.app'))"
		      " AND (s.share >= 0.005 OR ?1 < 0 OR ?3) ORDER BY s.rank LIMIT ?1");
	char time[32], share[32];
	bool first = true;

	if (!row)
		return;
	sqlite3_bind_int64(row, 1, options->sites_given ? (int64_t)options->sites ?: -1 : rows);
	sqlite3_bind_int(row, 2, options->compute);
	sqlite3_bind_int(row, 3, options->sites_given);
	while (page_next(page, row)) {
		g_autofree char *toll = page_column(row, 0), *call = page_column(row, 1);
		g_autofree char *area = page_column(row, 4), *allocated = page_column(row, 5);
		g_autofree char *touched = page_column(row, 6);
		g_autofree char *where = places(page, area, allocated, touched);

		if (first)
			fprintf(page->out, "%s%-12s%10s%8s  %-12s%s%s\n", page_bold(page),
				options->compute ? "SITES" : "MEMORY", "time", "share", "toll",
				"allocated -> touched", page_plain(page));
		first = false;
		format_time(time, sizeof(time), sqlite3_column_double(row, 2));
		snprintf(share, sizeof(share), "%.0f %%", 100 * sqlite3_column_double(row, 3));
		text_cut(call, 11);
		fprintf(page->out, "%-12s%10s%8s  %-12s%s\n", *call ? call : "-", time, share, toll,
			where);
	}
}

/*
 * Counts that agree with the kernel's are said in a word, others by name. The machine's swap counts
 * have what others do in them: where the target hardly swaps they are no matter of its verdict.
 */
static char *checks_said(struct page *page)
{
	sqlite3_stmt *row = page_query(
		page, "SELECT REPLACE(c.name, '_', ' '), c.ours, c.kernel, c.name LIKE 'swapped%'"
		      " AND COALESCE((SELECT share FROM temp.family WHERE family = 'swap'), 0)"
		      " < 0.01 FROM temp.checks c WHERE NOT c.ok ORDER BY c.position");
	char ours[32], kernel[32], *name, *said;
	GString *all = g_string_new(NULL);
	bool of_others = false;

	while (page_next(page, row)) {
		if (sqlite3_column_int(row, 3)) {
			of_others = true;
			continue;
		}
		name = page_column(row, 0);
		format_count(ours, sizeof(ours), sqlite3_column_int64(row, 1));
		format_count(kernel, sizeof(kernel), sqlite3_column_int64(row, 2));
		g_string_append_printf(all, "%s%s DIFFER: ours %s, the kernel's %s",
				       all->len ? "; " : "", name, ours, kernel);
		g_free(name);
	}
	said = g_string_free(all, FALSE);
	if (*said)
		return said;
	g_free(said);
	return g_strdup(of_others ? "checks ok but for the machine's swap" : "checks ok");
}

static void print_losses_beyond(struct page *page)
{
	sqlite3_stmt *row = page_query(page, "SELECT name, count, meaning, remedy FROM temp.losses"
					     " WHERE exceeds ORDER BY share DESC, name");
	char count[32];

	while (page_next(page, row)) {
		g_autofree char *name = page_column(row, 0), *meaning = page_column(row, 2);
		g_autofree char *remedy = page_column(row, 3), *prefix = NULL, *line = NULL;

		format_count(count, sizeof(count), sqlite3_column_int64(row, 1));
		prefix = g_strdup_printf("!!! %s: ", name);
		line = g_strdup_printf("%s %s (%s)", count, meaning, remedy);
		fputs(page_red(page), page->out);
		page_wrap(page, prefix, 4, line);
		fputs(page_plain(page), page->out);
	}
}

static void print_confidence(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page,
			   "SELECT o.estimated_pct, o.limit_pct, (SELECT COUNT(*) FROM temp.losses"
			   " WHERE count > 0 AND NOT exceeds), (SELECT COUNT(*) FROM temp.losses"
			   " WHERE exceeds), w.text FROM temp.overhead o JOIN temp.overhead_why w");
	char limit[128];

	while (page_next(page, row)) {
		g_autofree char *checks = checks_said(page), *line = NULL;
		g_autofree char *why = page_column(row, 4);
		int small = sqlite3_column_int(row, 2), large = sqlite3_column_int(row, 3);

		g_strlcpy(limit, "no limit", sizeof(limit));
		if (sqlite3_column_type(row, 1) != SQLITE_NULL)
			snprintf(limit, sizeof(limit), "limit %g %%%s%s",
				 sqlite3_column_double(row, 1), *why ? ", " : "", why);
		line = g_strdup_printf("%s, %s, overhead %.1f %% (%s)", checks,
				       large ? "LOSSES as above" :
				       small ? "little lost" :
					       "nothing lost",
				       sqlite3_column_double(row, 0), limit);
		page_wrap(page, "", 0, line);
	}
}

static void print_more(struct page *page, const struct report_options *options)
{
	sqlite3_stmt *row =
		page_query(page,
			   "SELECT code FROM temp.finding WHERE code <> 'none' ORDER BY position"
			   " LIMIT 1");
	g_autofree char *explain = NULL, *line = NULL;

	while (page_next(page, row)) {
		g_autofree char *code = page_column(row, 0);

		g_free(explain);
		explain = g_strdup_printf(", memtoll explain %s", code);
	}
	line = g_strdup_printf("more: %s%s", options->full_command, explain ? explain : "");
	page_wrap(page, "", 0, line);
}

static void print_nameless(struct page *page)
{
	sqlite3_stmt *row = page_query(page, "SELECT share, base FROM temp.nameless");

	while (page_next(page, row)) {
		g_autofree char *base = page_column(row, 1), *line = NULL;

		line = g_strdup_printf(
			"%.0f %% of the time is at code of %s without names: --full says"
			" which debug symbols to get",
			100 * sqlite3_column_double(row, 0), base);
		page_wrap(page, "", 0, line);
	}
}

/* Code that was made at run time, or nothing is known of, in places that no other code tells. */
static void print_fileless(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT unsaid FROM temp.fileless WHERE unsaid >= 0.1");

	while (page_next(page, row)) {
		g_autofree char *line = NULL;

		line = g_strdup_printf("%.0f %% of the time is at code in no file, without names:"
				       " --full says how to get them",
				       100 * sqlite3_column_double(row, 0));
		page_wrap(page, "", 0, line);
	}
}

typedef void (*print_fn)(struct page *page);

/* What several parts print, as text. */
static char *printed(struct page *page, const print_fn *parts, size_t count)
{
	FILE *out = page->out, *memory;
	char *text = NULL;
	size_t size, i;

	memory = open_memstream(&text, &size);
	if (!memory) {
		page->err = -errno;
		return NULL;
	}
	page->out = memory;
	for (i = 0; i < count; i++)
		parts[i](page);
	page->out = out;
	fclose(memory);
	return text;
}

static void print_growth(struct page *page)
{
	report_hold_growth(page, "HOLD ");
	report_hold_pinned(page, "HOLD ");
	report_hold_trim(page, "HOLD ");
}

int report_short(sqlite3 *database, const struct report_options *options, FILE *out)
{
	static const print_fn above[] = { print_head, print_shares, print_said, print_findings,
					  print_growth };
	static const print_fn below[] = { print_losses_beyond, print_nameless, print_fileless,
					  print_confidence };
	struct page page = { .database = database,
			     .out = out,
			     .color = options->color,
			     .columns = options->columns };
	int err, rows = options->lines ? (int)options->lines : 24;
	char *top, *bottom = NULL;

	err = report_views_make(database, "site_short", 0);
	if (err)
		return err;
	top = printed(&page, above, G_N_ELEMENTS(above));
	if (top)
		bottom = printed(&page, below, G_N_ELEMENTS(below));
	if (bottom) {
		/* A heading, the line of what else there is, and the prompt. */
		rows -= lines_of(top) + lines_of(bottom) + 3;
		fputs(top, out);
		print_site_rows(&page, options, CLAMP(rows, SITES_LEAST, SITES_MOST));
		fputs(bottom, out);
		print_more(&page, options);
	}
	free(bottom);
	free(top);
	return page.err ? page.err : report_flush(out);
}
