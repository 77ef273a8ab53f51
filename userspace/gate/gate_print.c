// SPDX-License-Identifier: GPL-2.0
#include "gate/gate_print.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>

#include "base/message.h"
#include "base/text.h"

#define SITES 3 /* of a bound */

const char *gate_result_name(enum gate_result result)
{
	static const char *const names[] = {
		[GATE_WITHIN] = "within",
		[GATE_OVER] = "over",
		[GATE_UNSURE] = "unsure",
		[GATE_MISSING] = "not captured",
	};

	return names[result];
}

/* A recording, and a bound on its multiple, may have numbers that are beyond any count. */
static int64_t whole(double value)
{
	return fabs(value) < 9e18 ? llround(value) : value < 0 ? INT64_MIN : INT64_MAX;
}

void gate_format(char *text, size_t size, enum gate_metric metric, double value)
{
	if (isnan(value))
		g_strlcpy(text, "-", size);
	else if (metric == GATE_TIME)
		format_time(text, size, value * 1e9);
	else if (metric == GATE_BYTES)
		format_bytes(text, size, value);
	else
		format_count(text, size, whole(value));
}

/* "12.4 MiB (13,004,800 bytes)": three digits do not tell by how little a bound is passed. */
static char *exactly(enum gate_metric metric, double value)
{
	char text[64], exact[64];

	gate_format(text, sizeof(text), metric, value);
	if (metric != GATE_BYTES || value < 1024)
		return g_strdup(text);
	format_count(exact, sizeof(exact), whole(value));
	return g_strdup_printf("%s (%s bytes)", text, exact);
}

/* ---- text ---- */

/* The subject's two sides, a line each. */
static void print_side(const char *label, const char *command, const GPtrArray *runs)
{
	g_autofree char *words = NULL, *shown = NULL;
	guint i;

	if (command) {
		words = runs->len > 1 ? g_strdup_printf("%u runs of %s", runs->len, command) :
					g_strdup_printf("a run of %s", command);
		shown = text_printable(words);
		text_wrap(stdout, label, 10, shown);
	}
	for (i = 0; !command && i < runs->len; i++) {
		g_autofree char *path =
			text_printable(((const struct counts *)g_ptr_array_index(runs, i))->path);

		printf("%s%s\n", i ? "          " : label, path);
	}
}

/* ", called by main.c:12 (main)" */
static char *said_caller(const struct count_site *site)
{
	return site->caller ? g_strdup_printf(", called by %s", site->caller) : g_strdup("");
}

static void print_site(const struct finding *finding, const struct site_change *change)
{
	const struct count_site *site = change->site;
	char before[64], now[64];
	g_autofree char *caller = said_caller(site), *words = NULL, *shown = NULL;

	gate_format(now, sizeof(now), finding->bound->metric, change->now);
	gate_format(before, sizeof(before), finding->bound->metric, change->before);
	words = g_strdup_printf("%s%s%s%s: %s%s%s", site->call, *site->call ? " at " : "",
				site->place, caller, now, isnan(change->before) ? "" : ", before ",
				isnan(change->before) ? "" : before);
	shown = text_printable(words);
	text_wrap(stdout, "    ", 6, shown);
	if (*site->file && site->line) {
		g_autofree char *file = text_printable(site->file);

		printf("      %s:%d\n", file, site->line);
	}
}

static void print_sites(const struct finding *finding)
{
	guint i, shown = 0;

	for (i = 0; finding->sites && i < finding->sites->len && shown < SITES; i++) {
		const struct site_change *change = g_ptr_array_index(finding->sites, i);

		if (change->now <= (isnan(change->before) ? 0 : change->before))
			break;
		print_site(finding, change);
		shown++;
	}
}

/* "budget.toml:3" */
static char *where(const struct gate_subject *subject, const struct bound *bound)
{
	return subject->budget->path ?
		       g_strdup_printf("%s:%u", subject->budget->path, bound->line) :
		       g_strdup("no budget was given");
}

static void print_finding(const struct gate_subject *subject, const struct finding *finding)
{
	const struct bound *bound = finding->bound;
	g_autofree char *place = where(subject, bound), *now = exactly(bound->metric, finding->now);
	g_autofree char *limit = exactly(bound->metric, finding->limit), *before = NULL,
			*was = NULL;
	g_autofree char *words = NULL, *shown = NULL, *range = NULL;
	char low[64], high[64];

	was = exactly(bound->metric, finding->before);
	before = isnan(finding->before) ? g_strdup("") : g_strdup_printf(", before %s", was);
	gate_format(low, sizeof(low), bound->metric, finding->low);
	gate_format(high, sizeof(high), bound->metric, finding->high);
	if (bound->metric == GATE_TIME && !isnan(finding->low))
		range = g_strdup_printf("; %s to %s (99 %%)", low, high);
	else if (finding->low < finding->high)
		range = g_strdup_printf("; %s to %s in the runs", low, high);
	words = g_strdup_printf(
		"%s <= %s (%s): %s; now %s%s%s%s%s", bound->name, bound->said, place, limit, now,
		before, range ? range : "",
		finding->result == GATE_UNSURE ? "; cannot be shown to be within: " : "",
		finding->reason ? finding->reason : "");
	shown = text_printable(words);
	text_wrap(stdout, "  ", 4, shown);
	print_sites(finding);
}

static void print_row(const struct finding *finding)
{
	const struct bound *bound = finding->bound;
	char limit[64], before[64], now[64];
	g_autofree char *name = text_printable(bound->name), *reason = NULL;
	/* A pattern that nothing matches holds nothing. */
	const char *note = bound->pattern && !(finding->now > 0) && !(finding->before > 0) ?
				   ": no such code was seen" :
				   "";

	gate_format(limit, sizeof(limit), bound->metric, finding->limit);
	gate_format(before, sizeof(before), bound->metric, finding->before);
	gate_format(now, sizeof(now), bound->metric, finding->now);
	if (finding->result == GATE_MISSING) {
		reason = text_printable(finding->reason);
		printf("%-28s  %s: %s\n", name, gate_result_name(finding->result), reason);
		return;
	}
	printf("%-28s%14s%14s%14s  %s%s\n", name, limit, before, now,
	       gate_result_name(finding->result), note);
}

static void print_conclusion(const struct gate_subject *subject, const struct verdict *verdict)
{
	unsigned int all = verdict->findings->len;

	if (verdict->over)
		printf("OVER BUDGET: %u of %u bounds\n", verdict->over, all);
	else if (verdict->unsure)
		printf("CANNOT BE SHOWN TO BE WITHIN: %u of %u bounds\n", verdict->unsure, all);
	else
		printf("WITHIN BUDGET: %u bound%s\n", all - verdict->missing,
		       all - verdict->missing == 1 ? "" : "s");
	if (!subject->budget->path && subject->now->len == 1 && subject->before->len == 1 &&
	    !verdict->over)
		puts("(one run of each: what varies by itself has the room of the usual bounds)");
}

static int by_excess(const void *one, const void *two)
{
	const struct finding *a = *(struct finding *const *)one;
	const struct finding *b = *(struct finding *const *)two;
	double x = a->now / MAX(a->limit, 1), y = b->now / MAX(b->limit, 1);

	return (x < y) - (x > y);
}

void gate_print_text(const struct gate_subject *subject, const struct verdict *verdict)
{
	g_autoptr(GPtrArray) bad = g_ptr_array_new();
	guint i;

	if (subject->budget->path) {
		g_autofree char *path = text_printable(subject->budget->path);

		printf("budget:   %s\n", path);
	}
	if (subject->before->len)
		print_side("before:   ", subject->against, subject->before);
	print_side("now:      ", subject->command, subject->now);
	putchar('\n');
	print_conclusion(subject, verdict);
	for (i = 0; i < verdict->findings->len; i++) {
		struct finding *finding = g_ptr_array_index(verdict->findings, i);

		if (finding->result == GATE_OVER || finding->result == GATE_UNSURE)
			g_ptr_array_add(bad, finding);
	}
	g_ptr_array_sort(bad, by_excess);
	for (i = 0; i < bad->len; i++)
		print_finding(subject, g_ptr_array_index(bad, i));
	printf("\n%-28s%14s%14s%14s\n", "BOUND", "at most", "before", "now");
	for (i = 0; i < verdict->findings->len; i++)
		print_row(g_ptr_array_index(verdict->findings, i));
}

/* ---- JSON ---- */

/* SQLite stores NAN as NULL, which JSON has, too. */
static int insert_bound(sqlite3_stmt *insert, guint number, const struct finding *finding)
{
	static const char *const units[] = {
		[GATE_COUNT] = "events",
		[GATE_BYTES] = "bytes",
		[GATE_TIME] = "s",
	};
	const struct bound *bound = finding->bound;
	const double values[] = { finding->limit, finding->before, finding->now, finding->low,
				  finding->high };
	const bool missing = finding->result == GATE_MISSING;
	size_t i;

	sqlite3_reset(insert);
	sqlite3_clear_bindings(insert);
	sqlite3_bind_int(insert, 1, number);
	sqlite3_bind_text(insert, 2, bound->name, -1, SQLITE_STATIC);
	if (bound->line)
		sqlite3_bind_int(insert, 3, bound->line);
	sqlite3_bind_text(insert, 4, bound->said, -1, SQLITE_STATIC);
	sqlite3_bind_text(insert, 5, units[bound->metric], -1, SQLITE_STATIC);
	sqlite3_bind_text(insert, 6, gate_result_name(finding->result), -1, SQLITE_STATIC);
	sqlite3_bind_text(insert, 7, finding->reason, -1, SQLITE_STATIC);
	for (i = 0; i < G_N_ELEMENTS(values) && !missing; i++) {
		/* What is counted is a whole number, up to 2^53. */
		if (bound->metric == GATE_TIME || isnan(values[i]))
			sqlite3_bind_double(insert, 8 + i, values[i]);
		else
			sqlite3_bind_int64(insert, 8 + i, whole(values[i]));
	}
	return sqlite3_step(insert) == SQLITE_DONE ? 0 : -ENOMEM;
}

static int insert_sites(sqlite3_stmt *insert, guint number, const struct finding *finding)
{
	guint i;

	for (i = 0; finding->sites && i < MIN(finding->sites->len, SITES); i++) {
		const struct site_change *change = g_ptr_array_index(finding->sites, i);
		const struct count_site *site = change->site;

		if (change->now <= (isnan(change->before) ? 0 : change->before))
			break;
		sqlite3_reset(insert);
		sqlite3_clear_bindings(insert);
		sqlite3_bind_int(insert, 1, number);
		sqlite3_bind_text(insert, 2, site->place, -1, SQLITE_STATIC);
		sqlite3_bind_text(insert, 3, site->call, -1, SQLITE_STATIC);
		sqlite3_bind_text(insert, 4, site->function, -1, SQLITE_STATIC);
		sqlite3_bind_text(insert, 5, site->file, -1, SQLITE_STATIC);
		sqlite3_bind_int(insert, 6, site->line);
		sqlite3_bind_text(insert, 7, site->caller, -1, SQLITE_STATIC);
		if (!isnan(change->before))
			sqlite3_bind_int64(insert, 8, whole(change->before));
		sqlite3_bind_int64(insert, 9, whole(change->now));
		if (sqlite3_step(insert) != SQLITE_DONE)
			return -ENOMEM;
	}
	return 0;
}

static int insert_runs(sqlite3_stmt *insert, const char *side, const GPtrArray *runs)
{
	guint i;

	for (i = 0; i < runs->len; i++) {
		sqlite3_reset(insert);
		sqlite3_bind_text(insert, 1, side, -1, SQLITE_STATIC);
		sqlite3_bind_text(insert, 2, ((struct counts *)g_ptr_array_index(runs, i))->path,
				  -1, SQLITE_STATIC);
		if (sqlite3_step(insert) != SQLITE_DONE)
			return -ENOMEM;
	}
	return 0;
}

static int print_object(sqlite3 *database, const struct gate_subject *subject,
			const struct verdict *verdict)
{
	static const char sql[] =
		"SELECT json_object('format', 1, 'result', ?1, 'budget', ?2, 'command', ?3,"
		" 'against', ?4, 'runs', ?5, 'recordings', json((SELECT json_group_array(path) FROM"
		" (SELECT path FROM run WHERE side = 'now' AND ?3 IS NULL ORDER BY rowid))),"
		" 'baseline', json((SELECT json_group_array(path) FROM (SELECT path FROM run WHERE"
		" side = 'before' AND ?4 IS NULL ORDER BY rowid))), 'bounds', json((SELECT"
		" json_group_array(json(object)) FROM (SELECT json_object('bound', name, 'line', line,"
		" 'said', said, 'unit', unit, 'result', result, 'reason', reason, 'limit', most,"
		" 'before', before, 'now', now, 'low', low, 'high', high, 'sites', json((SELECT"
		" json_group_array(json(one)) FROM (SELECT json_object('place', place, 'call', call,"
		" 'function', function, 'file', file, 'line', line, 'caller', caller, 'before', before,"
		" 'now', now) AS one FROM site s WHERE s.bound = b.number ORDER BY s.rowid)))) AS object"
		" FROM bound b ORDER BY number))))";
	enum gate_result result = verdict->over	  ? GATE_OVER :
				  verdict->unsure ? GATE_UNSURE :
						    GATE_WITHIN;
	sqlite3_stmt *row = NULL;
	int err = -ENOMEM;

	if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK)
		return err;
	sqlite3_bind_text(row, 1, gate_result_name(result), -1, SQLITE_STATIC);
	sqlite3_bind_text(row, 2, subject->budget->path, -1, SQLITE_STATIC);
	sqlite3_bind_text(row, 3, subject->command, -1, SQLITE_STATIC);
	sqlite3_bind_text(row, 4, subject->against, -1, SQLITE_STATIC);
	sqlite3_bind_int(row, 5, subject->now->len);
	if (sqlite3_step(row) == SQLITE_ROW) {
		/* Names may hold bytes that are no UTF-8 and would break a JSON reader. */
		g_autofree char *valid =
			g_utf8_make_valid((const char *)sqlite3_column_text(row, 0), -1);
		g_autofree char *shown = text_json(valid);

		puts(shown);
		err = 0;
	}
	sqlite3_finalize(row);
	return err;
}

int gate_print_json(const struct gate_subject *subject, const struct verdict *verdict)
{
	static const char schema[] =
		"CREATE TABLE bound (number, name, line, said, unit, result, reason, most, before, now,"
		" low, high);"
		"CREATE TABLE site (bound, place, call, function, file, line, caller, before, now);"
		"CREATE TABLE run (side, path)";
	sqlite3_stmt *bound = NULL, *site = NULL, *run = NULL;
	sqlite3 *database = NULL;
	int err = -ENOMEM;
	guint i;

	if (sqlite3_open(":memory:", &database) != SQLITE_OK ||
	    sqlite3_exec(database, schema, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(database,
			       "INSERT INTO bound VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", -1,
			       &bound, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(database, "INSERT INTO site VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", -1,
			       &site, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(database, "INSERT INTO run VALUES (?, ?)", -1, &run, NULL) !=
		    SQLITE_OK)
		goto out;
	err = insert_runs(run, "before", subject->before);
	if (!err)
		err = insert_runs(run, "now", subject->now);
	for (i = 0; !err && i < verdict->findings->len; i++) {
		const struct finding *finding = g_ptr_array_index(verdict->findings, i);

		err = insert_bound(bound, i, finding);
		if (!err)
			err = insert_sites(site, i, finding);
	}
	if (!err)
		err = print_object(database, subject, verdict);
out:
	if (err)
		message("gate: cannot make JSON: %s", sqlite3_errmsg(database));
	sqlite3_finalize(bound);
	sqlite3_finalize(site);
	sqlite3_finalize(run);
	sqlite3_close(database);
	return err;
}
