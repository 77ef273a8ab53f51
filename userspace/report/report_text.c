// SPDX-License-Identifier: GPL-2.0
/* report_text.c: a recording's views as text of at most 80 columns. */
#include "report/report.h"

#include <glib.h>
#include <string.h>

#include "base/text.h"
#include "report/report_hold.h"
#include "report/report_page.h"
#include "report/report_trust.h"
#include "report/report_views.h"

#define NAME_COLUMNS 38 /* stack_shown */

static void print_containers(struct page *page)
{
	sqlite3_stmt *row = page_query(
		page,
		"SELECT 'In container ' || title || COALESCE(' (' || runtime || COALESCE(', image ' ||"
		" image, '') || ')', '') || ': ' || CASE processes WHEN 1 THEN 'process ' || pid ||"
		" COALESCE(', there ' || pid_inside, '') ELSE processes || ' processes' END || '.',"
		" COUNT(*) OVER () FROM (SELECT c.title, c.id, c.runtime, c.image, COUNT(*) AS processes, p.pid,"
		" p.pid_inside FROM container c JOIN process p ON p.container = c.id GROUP BY c.id)"
		" ORDER BY processes DESC, title, id LIMIT 8");
	int all = 0, shown = 0;
	char *text;

	while (page_next(page, row)) {
		text = page_column(row, 0);
		page_wrap(page, "         ", 9, text);
		g_free(text);
		all = sqlite3_column_int(row, 1);
		shown++;
	}
	if (all > shown)
		fprintf(page->out, "         In %d more containers.\n", all - shown);
}

static void print_target(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT command, processes, duration_ns, observed_ns, complete,"
				 " end_reason = 'size limit' FROM temp.target");
	char duration[32], observed[32], *command, *line;

	while (page_next(page, row)) {
		command = page_column(row, 0);
		text_cut(command, TEXT_WIDTH - 9);
		format_time(duration, sizeof(duration), sqlite3_column_double(row, 2));
		format_time(observed, sizeof(observed), sqlite3_column_double(row, 3));
		fprintf(page->out, "%smemtoll:%s %s\n", page_bold(page), page_plain(page), command);
		line = g_strdup_printf(
			"%d process%s, recorded for %s; observed %s (on the CPU or asleep in"
			" a fault).",
			sqlite3_column_int(row, 1), sqlite3_column_int(row, 1) == 1 ? "" : "es",
			duration, observed);
		page_wrap(page, "         ", 9, line);
		if (!sqlite3_column_int(row, 4))
			fprintf(page->out, "%s!!! INCOMPLETE: the recording was not finished.%s\n",
				page_red(page), page_plain(page));
		if (sqlite3_column_int(row, 5))
			page_wrap(page, "         ", 9,
				  "It was ended by --max-size, its limit, and is"
				  " whole up to there.");
		g_free(line);
		g_free(command);
	}
	print_containers(page);
}

static void print_verdict(struct page *page)
{
	sqlite3_stmt *row = page_query(page, "SELECT sentence FROM temp.verdict");
	char *text, *title;

	page_heading(page, "VERDICT");
	while (page_next(page, row)) {
		text = page_column(row, 0);
		page_wrap(page, "  ", 2, text);
		g_free(text);
	}
	row = page_query(page, "SELECT code, label, text FROM temp.finding_line"
			       " ORDER BY position, number");
	while (page_next(page, row)) {
		char *label = page_column(row, 1);

		text = page_column(row, 0);
		title = g_strconcat("ADVICE ", text, NULL);
		if (!*label)
			page_heading(page, title);
		g_free(title);
		g_free(text);
		text = page_column(row, 2);
		title = g_strdup_printf("  %s%s", label, *label ? ": " : "");
		if (!strcmp(label, "Try")) /* to be pasted */
			fprintf(page->out, "%s%s\n", title, text);
		else
			page_wrap(page, title, 2, text);
		g_free(title);
		g_free(text);
		g_free(label);
	}
}

static void estimate_bytes(char *text, size_t size, double bytes, bool estimated)
{
	*text = '~';
	format_bytes(text + estimated, size - estimated, bytes);
}

/* How many; one column says whether the other is an estimate (1) or a lower bound (2). */
static void count_calls(char *text, size_t size, sqlite3_stmt *row, int column, int estimated)
{
	int how = sqlite3_column_int(row, estimated);

	if (how == 1)
		format_estimate(text, size, sqlite3_column_int64(row, column));
	else if (how)
		format_at_least(text, size, sqlite3_column_int64(row, column));
	else
		format_count(text, size, sqlite3_column_int64(row, column));
}

/* Of CPU samples. */
static bool is_stored(const char *toll)
{
	return !strcmp(toll, "zero.app") || !strcmp(toll, "copy.app");
}

/* Between what its bytes are. */
static void print_estimate(struct page *page, sqlite3_stmt *row)
{
	char low[32], high[32];

	format_bytes(low, sizeof(low), sqlite3_column_double(row, 10));
	format_bytes(high, sizeof(high), sqlite3_column_double(row, 11));
	fprintf(page->out, "%*s%s - %s\n", (int)(75 - strlen(low) - strlen(high) - 3), "", low,
		high);
}

static void print_tolls(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page,
			   "SELECT toll, not_captured, time_ns, share, low, high, count, bytes,"
			   " bytes_estimated, (toll IN (SELECT toll FROM temp.estimated_count))"
			   " * (1 + (toll = 'alloc' AND EXISTS (SELECT 1 FROM temp.cached_call))),"
			   " bytes_low, bytes_high FROM temp.toll ORDER BY position");
	char time[32], share[32], range[48], count[32], bytes[32], *name, *reason, *line;

	fprintf(page->out, "\n%s%-12s%11s%9s%16s%15s%12s%s\n", page_bold(page), "TOLL", "time",
		"share", "between", "count", "bytes", page_plain(page));
	while (page_next(page, row)) {
		name = page_column(row, 0);
		if (sqlite3_column_type(row, 1) != SQLITE_NULL) {
			reason = page_column(row, 1);
			line = g_strdup_printf("%-12s   not captured: ", name);
			page_wrap(page, line, 15, reason);
			g_free(line);
			g_free(reason);
			g_free(name);
			continue;
		}
		format_time(time, sizeof(time), sqlite3_column_double(row, 2));
		format_share(share, sizeof(share), sqlite3_column_double(row, 3));
		snprintf(range, sizeof(range), "%.1f-%.1f %%", 100 * sqlite3_column_double(row, 4),
			 100 * sqlite3_column_double(row, 5));
		count_calls(count, sizeof(count), row, 6, 9);
		estimate_bytes(bytes, sizeof(bytes), sqlite3_column_double(row, 7),
			       sqlite3_column_int(row, 8));
		fprintf(page->out, "%-12s%11s%9s%16s", name, time, share, range);
		if (strcmp(name, "compute")) /* it has samples only */
			fprintf(page->out, "%15s%12s", count, bytes);
		fputc('\n', page->out);
		if (sqlite3_column_double(row, 10) < sqlite3_column_double(row, 11))
			print_estimate(page, row);
		g_free(name);
	}
}

static void print_stack(struct page *page, const char *label, int64_t stack_id)
{
	sqlite3_stmt *row;
	char *name, *place;
	int shown = 0, more = 0;

	if (!stack_id)
		return;
	row = page_query(
		page, "SELECT name, place, (SELECT COUNT(*) FROM stack_frame f WHERE f.stack_id ="
		      " s.stack_id) FROM stack_shown s WHERE stack_id = ? ORDER BY depth");
	if (!row)
		return;
	sqlite3_bind_int64(row, 1, stack_id);
	while (page_next(page, row)) {
		name = page_column(row, 0);
		place = page_column(row, 1);
		more = sqlite3_column_int(row, 2) - ++shown;
		fprintf(page->out, "  %-14s%s%*s  %s\n", shown == 1 ? label : "", name,
			(int)MAX(0, NAME_COLUMNS - g_utf8_strlen(name, -1)), "", place);
		g_free(place);
		g_free(name);
	}
	if (more > 0)
		fprintf(page->out, "%16s(%d more)\n", "", more);
}

/* Where faults fell outside of allocations: "heap", "library /usr/lib/libc.so.6". */
static void print_area(struct page *page, sqlite3_stmt *row, int column)
{
	char *area = page_column(row, column);

	if (*area)
		fprintf(page->out, "  %-14s%s\n", "in", area);
	g_free(area);
}

static void print_sites(struct page *page, unsigned int sites)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT toll, call, time_ns, share, bytes, count, allocated_stack,"
				 " touched_stack, at_least, COUNT(*) OVER (), area,"
				 " (toll IN (SELECT toll FROM temp.estimated_count)) * (1 +"
				 " (toll = 'alloc' AND EXISTS (SELECT 1 FROM"
				 " temp.cached_call))) FROM"
				 " temp.site_page ORDER BY rank LIMIT ?");
	char time[32], share[32], count[32], bytes[32], *toll, *call, *title;
	bool first = true, at_least;

	if (!row)
		return;
	sqlite3_bind_int64(row, 1, sites ? (int64_t)sites : -1);
	while (page_next(page, row)) {
		if (first) {
			title = g_strdup_printf("SITES (%d in all)", sqlite3_column_int(row, 9));
			page_heading(page, title);
			g_free(title);
		}
		first = false;
		toll = page_column(row, 0);
		call = page_column(row, 1);
		format_time(time, sizeof(time), sqlite3_column_double(row, 2));
		format_share(share, sizeof(share), sqlite3_column_double(row, 3));
		format_bytes(bytes, sizeof(bytes), sqlite3_column_double(row, 4));
		count_calls(count, sizeof(count), row, 5, 11);
		at_least = sqlite3_column_int(row, 8);
		fprintf(page->out, "%s%8s%s %10s  %-12s%-16s%12s", page_bold(page), share,
			page_plain(page), time, toll, call, at_least ? "" : count);
		if (at_least)
			fprintf(page->out, " at least %s\n", bytes);
		else if (!strcmp(toll, "compute") || is_stored(toll))
			fprintf(page->out, " sample%s%s%s\n",
				sqlite3_column_int64(row, 5) == 1 ? "" : "s",
				is_stored(toll) ? "  ~" : "", is_stored(toll) ? bytes : "");
		else
			fprintf(page->out, " x  %s\n", bytes);
		print_area(page, row, 10);
		print_stack(page,
			    !strcmp(toll, "map")  ? "called at" :
			    !strcmp(call, "free") ? "freed at" :
						    "allocated at",
			    sqlite3_column_int64(row, 6));
		print_stack(page,
			    !strcmp(toll, "compute")   ? "sampled at" :
			    !strcmp(toll, "file.read") ? "read at" :
							 "touched at",
			    sqlite3_column_int64(row, 7));
		g_free(call);
		g_free(toll);
	}
}

static void print_amount(struct page *page, const char *label, sqlite3_stmt *row, int column,
			 const char *absent, const char *suffix)
{
	char bytes[32];

	g_strlcpy(bytes, absent, sizeof(bytes));
	if (sqlite3_column_type(row, column) != SQLITE_NULL)
		format_bytes(bytes, sizeof(bytes), sqlite3_column_double(row, column));
	fprintf(page->out, "  %-24s%12s%s%s\n", label, bytes, *suffix ? "  " : "", suffix);
}

static void print_allocators(struct page *page)
{
	page_list(page, "ALLOCATOR", "  ",
		  "SELECT text FROM temp.allocator_text ORDER BY position LIMIT 8");
}

static void print_zeroing(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT bytes_kernel, bytes_libc, bytes_twice, bytes_never_used,"
				 " libc_bytes_unknown, t.time_ns, t.clear_ns, bytes_app"
				 " FROM temp.zeroing"
				 " LEFT JOIN temp.toll t ON t.toll = 'zero.kernel'");
	char time[32], clear[32], suffix[96];

	while (page_next(page, row)) {
		page_heading(page, "ZEROING");
		format_time(time, sizeof(time), sqlite3_column_double(row, 5));
		format_time(clear, sizeof(clear), sqlite3_column_double(row, 6));
		snprintf(suffix, sizeof(suffix), "clearing is %s of %s", clear, time);
		print_amount(page, "cleared by the kernel", row, 0, "not captured",
			     sqlite3_column_double(row, 5) > 0 ? suffix : "");
		print_amount(page, "cleared by libc's calloc", row, 1, "not captured",
			     sqlite3_column_int(row, 4) ? "at least (an unknown allocator)" : "");
		print_amount(page, "cleared by other code", row, 7, "not captured",
			     sqlite3_column_double(row, 7) > 0 ? "estimated" : "");
		print_amount(page, "cleared twice", row, 2, "", "by the kernel, then by a memset");
		print_amount(page, "never used", row, 3, "", "in freed blocks with own mappings");
	}
}

static void print_access(struct page *page)
{
	sqlite3_stmt *row = page_query(
		page,
		"SELECT CASE WHEN call <> '' THEN call || COALESCE(' at ' || (SELECT CASE call"
		" WHEN 'mmap' THEN p.code ELSE p.caller END FROM stack_place p"
		" WHERE p.stack_id = allocated_stack), '')"
		" ELSE RTRIM(area || ' ' || area_name) END,"
		" 4096 * first_pages, 4096 * in_pages, returns, pattern FROM temp.access_pattern"
		" WHERE 100 * in_pages > (SELECT SUM(in_pages) FROM temp.access_pattern)"
		" OR pattern LIKE 'one%' ORDER BY rank LIMIT 8");
	char first[32], back[32], *where, *pattern;
	bool any = false;

	while (page_next(page, row)) {
		if (!any)
			fprintf(page->out, "  %-30s%11s%11s%8s  %s\n", "", "touched", "came back",
				"times", "gone over");
		any = true;
		where = page_column(row, 0);
		pattern = page_column(row, 4);
		text_cut(where, 30);
		format_bytes(first, sizeof(first), sqlite3_column_double(row, 1));
		format_bytes(back, sizeof(back), sqlite3_column_double(row, 2));
		fprintf(page->out, "  %s%*s%11s%11s%8.1f  %s\n", where,
			(int)(30 - g_utf8_strlen(where, -1)), "", first, back,
			sqlite3_column_double(row, 3), pattern);
		g_free(pattern);
		g_free(where);
	}
}

static void print_swap(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT m.limit_bytes, m.rss_peak_bytes, m.swap_peak_bytes,"
				 " m.came_back_bytes, m.fits_bytes, COALESCE(m.limit_path, ''),"
				 " s.blocked_ns FROM temp.memory m JOIN temp.swap_source s"
				 " WHERE m.came_back_bytes > 0 OR EXISTS (SELECT 1 FROM temp.toll"
				 " WHERE toll = 'swap.out' AND count > 0)");
	char asleep[32], suffix[96], *path;

	while (page_next(page, row)) {
		page_heading(page, "SWAP");
		path = page_column(row, 5);
		text_cut(path, 36);
		format_time(asleep, sizeof(asleep), sqlite3_column_double(row, 6));
		if (sqlite3_column_type(row, 0) != SQLITE_NULL)
			print_amount(page, "memory that may be used", row, 0, "unknown",
				     *path ? path : "of the machine");
		print_amount(page, "resident at most", row, 1, "unknown", "");
		print_amount(page, "swapped at most", row, 2, "unknown", "");
		snprintf(suffix, sizeof(suffix), "different pages; asleep for them %s", asleep);
		print_amount(page, "came back", row, 3, "unknown", suffix);
		if (sqlite3_column_type(row, 4) != SQLITE_NULL)
			print_amount(page, "would be enough", row, 4, "unknown", "estimated");
		g_free(path);
		print_access(page);
	}
}

/* How often each block was read, which is not known of all files. */
static void format_times(char *text, size_t size, sqlite3_stmt *row, int column)
{
	double times = sqlite3_column_double(row, column);

	if (sqlite3_column_type(row, column) == SQLITE_NULL)
		snprintf(text, size, "-");
	else
		snprintf(text, size, times < 100 ? "%.1f" : "%.0f", times);
}

static void print_read_files(struct page *page)
{
	sqlite3_stmt *row = page_query(
		page,
		"SELECT CASE WHEN LENGTH(f.path) > 36 THEN '...' || SUBSTR(f.path, -33) ELSE f.path END,"
		" f.calls, f.bytes, f.time_ns, r.reread_factor, COALESCE(1.0 * f.cached_bytes /"
		" NULLIF(f.bytes, 0), 0.0) FROM temp.files f LEFT JOIN temp.file_reuse r"
		" ON r.file = f.file WHERE f.time_ns > 0.01 * (SELECT observed_ns FROM temp.observed)"
		" ORDER BY f.rank LIMIT 8");
	char calls[32], bytes[32], time[32], times[32], cached[32], *path;
	bool any = false;

	while (page_next(page, row)) {
		if (!any) {
			page_heading(page, "READS");
			fprintf(page->out, "  %-36s%9s%10s%10s%6s%7s\n", "", "reads", "bytes",
				"time", "times", "cached");
		}
		any = true;
		path = page_column(row, 0);
		format_count(calls, sizeof(calls), sqlite3_column_int64(row, 1));
		format_bytes(bytes, sizeof(bytes), sqlite3_column_double(row, 2));
		format_time(time, sizeof(time), sqlite3_column_double(row, 3));
		snprintf(cached, sizeof(cached), "%.0f %%", 100 * sqlite3_column_double(row, 5));
		format_times(times, sizeof(times), row, 4);
		fprintf(page->out, "  %s%*s%9s%10s%10s%6s%7s\n", path,
			(int)(36 - g_utf8_strlen(path, -1)), "", calls, bytes, time, times, cached);
		g_free(path);
	}
}

/* What would be read again no more: where it is a fifth of the time, or it would be idle talk. */
static void print_reads(struct page *page)
{
	sqlite3_stmt *row = page_query(
		page,
		"SELECT r.read_different_bytes, r.reread_half_bytes, r.reread_enough_bytes FROM"
		" temp.read_measure r WHERE r.reread_share > 0.1"
		" AND 5 * r.read_ns > (SELECT observed_ns FROM temp.observed)");

	print_read_files(page);
	while (page_next(page, row)) {
		print_amount(page, "different blocks", row, 0, "unknown", "of all files");
		print_amount(page, "half read again no more", row, 1, "unknown",
			     "with so much more cache");
		print_amount(page, "nothing read twice", row, 2, "unknown",
			     "with so much; hits in its own cache are not seen");
	}
}

/* Only what came again: memory that is given back and left alone costs nothing more. */
static void print_giveback(struct page *page)
{
	sqlite3_stmt *row = page_query(
		page,
		"SELECT g.gave_bytes, g.again_bytes, g.again_bytes_per_s, g.twice_bytes, g.how,"
		" CASE g.gave_call WHEN '' THEN 'the program' ELSE g.gave_call END || COALESCE("
		" ' at ' || (SELECT CASE g.gave_call WHEN '' THEN p.code ELSE p.caller END"
		" FROM stack_place p WHERE p.stack_id = g.gave_stack), ''),"
		" CASE g.got_call WHEN '' THEN 'touched' ELSE g.got_call END || COALESCE("
		" ' at ' || (SELECT CASE WHEN g.got_call IN ('', 'mmap') THEN p.code ELSE p.caller"
		" END FROM stack_place p WHERE p.stack_id = g.got_stack), ''), (SELECT COUNT(*) FROM temp.giveback_site WHERE again_bytes > 0)"
		" FROM temp.giveback_site g WHERE g.again_bytes > 0 ORDER BY g.rank LIMIT 5");
	char gave[32], again[32], rate[32], twice[32], *how, *giver, *getter;
	int shown = 0, all = 0;

	while (page_next(page, row)) {
		if (!shown++)
			fprintf(page->out, "\n%s%-11s%10s%11s  %-9s%s%s\n", page_bold(page),
				"GIVEN BACK", "got again", "a second", "how", "by, and got by",
				page_plain(page));
		all = sqlite3_column_int(row, 7);
		how = page_column(row, 4);
		giver = page_column(row, 5);
		getter = page_column(row, 6);
		text_cut(giver, TEXT_WIDTH - 43);
		text_cut(getter, TEXT_WIDTH - 43);
		format_bytes(gave, sizeof(gave), sqlite3_column_double(row, 0));
		format_bytes(again, sizeof(again), sqlite3_column_double(row, 1));
		format_bytes(rate, sizeof(rate), sqlite3_column_double(row, 2));
		format_bytes(twice, sizeof(twice), sqlite3_column_double(row, 3));
		fprintf(page->out, "%-11s%10s%11s  %-9s%s\n%43s%s\n", gave, again, rate, how, giver,
			"", getter);
		if (sqlite3_column_int64(row, 3))
			fprintf(page->out, "%43s%s cleared twice\n", "", twice);
		g_free(getter);
		g_free(giver);
		g_free(how);
	}
	if (all > shown)
		fprintf(page->out, "%43sand %d more\n", "", all - shown);
}

/* A quantile; below what the probes let us tell: that. */
static void format_quantile(char *text, size_t size, double ns, double resolution_ns)
{
	char time[32];

	format_time(time, sizeof(time), MAX(ns, resolution_ns));
	snprintf(text, size, "%s%s", ns < resolution_ns ? "< " : "", time);
}

static void print_stalls(struct page *page)
{
	sqlite3_stmt *row = page_query(page, "SELECT text FROM temp.stall_text ORDER BY position");
	char *text;

	while (page_next(page, row)) {
		text = page_column(row, 0);
		page_wrap(page, "  - ", 4, text);
		g_free(text);
	}
}

static void print_latency(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT call, calls, p50_ns, p99_ns, max_ns, resolution_ns,"
				 " mostly FROM temp.latency_text ORDER BY position");
	char count[32], median[40], high[40], longest[32], *call, *mostly;
	bool any = false;

	while (page_next(page, row)) {
		if (!any)
			fprintf(page->out, "\n%s%-15s%13s%11s%11s%11s  %s%s\n", page_bold(page),
				"LATENCY", "calls", "median", "99 % below", "longest", "spent most",
				page_plain(page));
		any = true;
		call = page_column(row, 0);
		mostly = page_column(row, 6);
		format_count(count, sizeof(count), sqlite3_column_int64(row, 1));
		format_quantile(median, sizeof(median), sqlite3_column_double(row, 2),
				sqlite3_column_double(row, 5));
		format_quantile(high, sizeof(high), sqlite3_column_double(row, 3),
				sqlite3_column_double(row, 5));
		format_time(longest, sizeof(longest), sqlite3_column_double(row, 4));
		fprintf(page->out, "%-15s%13s%11s%11s%11s  %s\n", call, count, median, high,
			longest, mostly);
		g_free(mostly);
		g_free(call);
	}
	if (any)
		print_stalls(page);
}

/* Those that are not what glibc begins with. */
static void print_thresholds(struct page *page)
{
	sqlite3_stmt *row = page_query(
		page,
		"SELECT t.name, CASE WHEN t.low_bytes = t.high_bytes THEN printf('%,d bytes', t.low_bytes)"
		" WHEN t.high_bytes IS NULL THEN printf('at least %,d bytes', t.low_bytes)"
		" ELSE printf('%,d to %,d bytes', t.low_bytes, t.high_bytes) END ||"
		" CASE t.how WHEN 'tunable' THEN ', set in the environment'"
		" WHEN 'read' THEN CASE t.changes WHEN 0 THEN ', from before the recording' ELSE '' END"
		" WHEN 'inherited' THEN ', from its parent' ELSE '' END ||"
		" CASE WHEN t.changes = 0 THEN '' ELSE CASE WHEN t.before_low_bytes ="
		" t.before_high_bytes THEN printf(', %,d', t.before_low_bytes) ELSE ', else' END ||"
		" printf(' until %.3f s after the start', (t.changed_ns - (SELECT MIN(start_ns) FROM"
		" slice)) / 1e9) || CASE WHEN t.call <> '' THEN CASE t.how WHEN 'freed' THEN ': '"
		" ELSE ', seen in ' END || t.call || COALESCE(' at ' ||"
		" (SELECT p.caller FROM stack_place p WHERE p.stack_id = t.stack_id), '')"
		" ELSE '' END || CASE WHEN t.changes > 1"
		" THEN printf(' (%d changes)', t.changes) ELSE '' END END ||"
		" CASE WHEN (SELECT COUNT(DISTINCT pid) FROM temp.threshold_state) > 1"
		" THEN printf(' (process %d)', t.pid) ELSE '' END"
		" FROM temp.threshold_state t WHERE t.how <> 'default' AND NOT (t.how = 'read' AND"
		" t.changes = 0 AND t.low_bytes = 131072 AND t.high_bytes = 131072)"
		" ORDER BY t.pid, t.name LIMIT 6");
	bool first = true;
	char *name, *text, *label;

	while (page_next(page, row)) {
		if (first)
			page_heading(page, "GLIBC'S THRESHOLDS");
		first = false;
		name = page_column(row, 0);
		text = page_column(row, 1);
		label = g_strdup_printf("  %-16s", name);
		text_wrap(page->out, label, 18, text);
		g_free(label);
		g_free(text);
		g_free(name);
	}
}

static void print_processes(struct page *page)
{
	sqlite3_stmt *row = page_query(
		page,
		"SELECT p.pid, p.comm, o.observed_ns, p.end_ns, p.exit_code,"
		" (SELECT x.toll FROM temp.process_toll x WHERE x.pid = p.pid AND x.time_ns > 0"
		"  ORDER BY x.time_ns DESC, x.toll LIMIT 1),"
		" (SELECT MAX(x.time_ns) FROM temp.process_toll x WHERE x.pid = p.pid),"
		" COUNT(*) OVER (), 'in ' || (SELECT c.title FROM container c WHERE c.id = p.container)"
		" || COALESCE(', there process ' || p.pid_inside, '')"
		" FROM process p LEFT JOIN temp.process_observed o"
		" ON o.pid = p.pid"
		" ORDER BY o.observed_ns DESC, p.pid LIMIT 10");
	char observed[32], time[32] = "", end[32], *comm, *toll;
	int code, shown = 0, all = 0;

	while (page_next(page, row)) {
		all = sqlite3_column_int(row, 7);
		if (all < 2)
			continue;
		if (!shown++)
			fprintf(page->out, "\n%s%-9s%-17s%12s  %-12s%12s  %s%s\n", page_bold(page),
				"PROCESS", "name", "observed", "largest toll", "", "end",
				page_plain(page));
		code = sqlite3_column_int(row, 4);
		if (sqlite3_column_type(row, 3) == SQLITE_NULL)
			snprintf(end, sizeof(end), "goes on");
		else if (code & 0x7f) /* wait(2) */
			snprintf(end, sizeof(end), "signal %d", code & 0x7f);
		else
			snprintf(end, sizeof(end), "exit %d", code >> 8 & 0xff);
		comm = page_column(row, 1);
		toll = page_column(row, 5);
		text_cut(comm, 16);
		format_time(observed, sizeof(observed), sqlite3_column_double(row, 2));
		format_time(time, sizeof(time), sqlite3_column_double(row, 6));
		fprintf(page->out, "%-9d%-17s%12s  %-12s%12s  %s\n", sqlite3_column_int(row, 0),
			comm, observed, toll, *toll ? time : "", end);
		if (sqlite3_column_type(row, 8) != SQLITE_NULL) {
			g_autofree char *inside = page_column(row, 8);

			page_wrap(page, "         ", 9, inside);
		}
		g_free(toll);
		g_free(comm);
	}
	if (all > shown && shown)
		fprintf(page->out, "         and %d more\n", all - shown);
}

static void print_sampled(struct page *page)
{
	sqlite3_stmt *row =
		page_query(page, "SELECT e.call, e.bytes, e.bytes_error, e.live_bytes,"
				 " e.live_bytes_error, (SELECT p.caller FROM stack_place p"
				 " WHERE p.stack_id = e.stack_id)"
				 " FROM temp.sample_estimate e ORDER BY e.bytes DESC LIMIT 5");
	char bytes[32], error[32], live[32], live_error[32], *call, *place, *line;
	bool first = true;

	while (page_next(page, row)) {
		if (first)
			page_heading(page, "SAMPLED (blocks below --min-size, estimates)");
		first = false;
		call = page_column(row, 0);
		place = page_column(row, 5);
		format_bytes(bytes, sizeof(bytes), sqlite3_column_double(row, 1));
		format_bytes(error, sizeof(error), sqlite3_column_double(row, 2));
		format_bytes(live, sizeof(live), sqlite3_column_double(row, 3));
		format_bytes(live_error, sizeof(live_error), sqlite3_column_double(row, 4));
		line = sqlite3_column_type(row, 3) == SQLITE_NULL ?
			       g_strdup_printf("%s +- %s by %s at %s", bytes, error, call, place) :
			       g_strdup_printf("%s +- %s by %s at %s, of which live %s +- %s",
					       bytes, error, call, place, live, live_error);
		page_wrap(page, "  - ", 4, line);
		g_free(line);
		g_free(place);
		g_free(call);
	}
}

int report_text(sqlite3 *database, const struct report_options *options, FILE *out)
{
	struct page page = { .database = database, .out = out, .color = options->color };
	int err;

	err = report_views_make(database, "site_page", 0);
	if (err)
		return err;
	print_target(&page);
	print_verdict(&page);
	print_tolls(&page);
	print_sites(&page, options->sites);
	print_allocators(&page);
	print_sampled(&page);
	print_zeroing(&page);
	report_hold(&page);
	print_latency(&page);
	print_swap(&page);
	print_reads(&page);
	print_giveback(&page);
	print_thresholds(&page);
	print_processes(&page);
	print_trust(&page);
	return page.err ? page.err : report_flush(out);
}
