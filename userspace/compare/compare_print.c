// SPDX-License-Identifier: GPL-2.0
#include "compare/compare_print.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "base/shell.h"
#include "base/text.h"

/* A difference below this part of the larger side is none worth speaking of. */
#define WORTH 0.02
/*
 * Tolls of less than this part of the observed time are left out of the text where nothing moved.
 */
#define SMALL 0.0005
/* How many tolls a conclusion names. */
#define NAMED 3

/* "1.23 ms"; the sign of a difference is always there. */
static void format_value(char *text, size_t size, enum compare_unit unit, double value, bool sign)
{
	char number[48];

	if (isnan(value)) {
		g_strlcpy(text, sign ? "?" : "not captured", size);
		return;
	}
	if (unit == COMPARE_SECONDS)
		format_time(number, sizeof(number), fabs(value) * 1e9);
	else if (unit == COMPARE_BYTES)
		format_bytes(number, sizeof(number), fabs(value));
	else
		format_count(number, sizeof(number), llround(fabs(value)));
	snprintf(text, size, "%s%s", value < 0 ? "-" : sign && value > 0 ? "+" : "", number);
}

static double half(const struct difference *difference)
{
	return (difference->high - difference->low) / 2;
}

static int by_change(const void *one, const void *two)
{
	const struct figure *a = *(struct figure *const *)one, *b = *(struct figure *const *)two;
	double x = fabs(a->difference.value), y = fabs(b->difference.value);

	return (x < y) - (x > y);
}

/* "Mostly zero.libc -1.13 s, map +12 ms."; "" where no toll moved beyond its error. */
static char *what_moved(const struct comparison *comparison, double total)
{
	g_autoptr(GPtrArray) moved = g_ptr_array_new();
	g_autoptr(GString) text = g_string_new("");
	guint i;

	for (i = 0; i < comparison->figures->len; i++) {
		struct figure *figure = g_ptr_array_index(comparison->figures, i);

		if (figure->kind == COMPARE_TOLL && difference_proved(&figure->difference) &&
		    fabs(figure->difference.value) > WORTH * fabs(total))
			g_ptr_array_add(moved, figure);
	}
	g_ptr_array_sort(moved, by_change);
	for (i = 0; i < MIN(moved->len, NAMED); i++) {
		struct figure *figure = g_ptr_array_index(moved, i);
		char value[64];

		format_value(value, sizeof(value), figure->unit, figure->difference.value, true);
		g_string_append_printf(text, "%s%s %s", i ? ", " : " Mostly ", figure->name, value);
	}
	if (moved->len)
		g_string_append_c(text, '.');
	return g_strdup(text->str);
}

/*
 * Did both the wall and the CPU time of the runs that are not traced move the other way? A burst of
 * other work can hit the runs of one side by chance, and the bounds, which take runs to vary each
 * for itself, know nothing of it: what is said of the program has to hold of these as well.
 */
static bool is_contradicted(const struct compare_plan *plan, const struct comparison *comparison,
			    double difference)
{
	static const char *const names[] = { "wall time", "CPU time" };
	size_t i;

	if (plan->tracing.duration_ns) /* each is ended after the same time */
		return false;
	for (i = 0; i < G_N_ELEMENTS(names); i++) {
		const struct figure *plain = comparison_find(comparison, COMPARE_RUN, names[i]);

		if (!plain || !(plain->difference.value * difference < 0))
			return false;
	}
	return true;
}

char *compare_conclusion(const struct compare_plan *plan, const struct comparison *comparison,
			 const char **verdict)
{
	const struct figure *total = comparison_find(comparison, COMPARE_TOTAL, "observed");
	double without = total->estimate[WITHOUT].mean, with = total->estimate[WITH].mean;
	const char *per = plan->tracing.duration_ns ? "a second of recording" : "a run";
	const struct difference *ratio = &total->ratio;
	char before[64], after[64], difference[64];
	g_autofree char *moved = what_moved(comparison, with - without);

	format_value(before, sizeof(before), COMPARE_SECONDS, without, false);
	format_value(after, sizeof(after), COMPARE_SECONDS, with, false);
	format_value(difference, sizeof(difference), COMPARE_SECONDS, with - without, true);
	if (isnan(ratio->low)) {
		*verdict = "unknown";
		return g_strdup_printf(
			"One run of each, too short to tell an error from: observed time"
			" %s without and %s with the change, for %s. Use --runs 3.",
			before, after, per);
	}
	if (!ratio_proved(ratio) || fabs(with - without) < WORTH * MAX(without, with)) {
		*verdict = "none";
		return g_strdup_printf("No difference: the observed time of %s is %s without and %s"
				       " with the change; %s is %s.",
				       per, before, after, difference,
				       ratio_proved(ratio) ? "too little to matter (below 2 %)" :
							     "within the error (99 % bounds)");
	}
	if (is_contradicted(plan, comparison, with - without)) {
		*verdict = "none";
		return g_strdup_printf("No difference that holds: the observed time of %s is %s"
				       " without and %s with the change, and the runs that were not"
				       " traced moved the other way. Use more --runs.",
				       per, before, after);
	}
	if (with < without) {
		*verdict = "less";
		return g_strdup_printf("The change saves %.0f %% (%.0f-%.0f %%, 99 %% bounds): the"
				       " observed time of %s is %s without and %s with it.%s",
				       100 * (1 - ratio->value), 100 * (1 - ratio->high),
				       100 * (1 - ratio->low), per, before, after, moved);
	}
	*verdict = "more";
	return g_strdup_printf("The change costs %.*f times as much (%.3g-%.3g, 99 %% bounds): the"
			       " observed time of %s is %s without and %s with it.%s",
			       ratio->value < 10 ? 2 : 0, ratio->value, ratio->low, ratio->high,
			       per, before, after, moved);
}

/* Beyond the error, and large enough to matter. */
static bool is_worth(const struct figure *figure)
{
	double most = MAX(fabs(figure->estimate[WITHOUT].mean), fabs(figure->estimate[WITH].mean));

	return difference_proved(&figure->difference) &&
	       fabs(figure->difference.value) >= WORTH * most;
}

static void print_row(const struct figure *figure, const char *indent)
{
	char before[64], after[64], value[64], error[64];
	g_autofree char *name = g_strconcat(indent, figure->name, NULL);

	format_value(before, sizeof(before), figure->unit, figure->estimate[WITHOUT].mean, false);
	format_value(after, sizeof(after), figure->unit, figure->estimate[WITH].mean, false);
	format_value(value, sizeof(value), figure->unit, figure->difference.value, true);
	format_value(error, sizeof(error), figure->unit, half(&figure->difference), false);
	printf("%-16s%14s%14s%14s%12s  %s\n", name, before, after, value,
	       isnan(half(&figure->difference)) ? "?" : error,
	       isnan(half(&figure->difference)) ? "" :
	       is_worth(figure)			? "differs" :
						  "same");
}

/* Families by themselves say nothing where they have one toll. */
static unsigned int tolls_of(const struct comparison *comparison, const char *family)
{
	unsigned int count = 0;
	guint i;

	for (i = 0; i < comparison->figures->len; i++) {
		const struct figure *figure = g_ptr_array_index(comparison->figures, i);

		count += figure->kind == COMPARE_TOLL && !g_strcmp0(figure->family, family);
	}
	return count;
}

static bool is_small(const struct figure *figure, double total)
{
	return fabs(figure->estimate[WITHOUT].mean) < SMALL * total &&
	       fabs(figure->estimate[WITH].mean) < SMALL * total;
}

static void print_tolls(const struct comparison *comparison)
{
	const struct figure *total = comparison_find(comparison, COMPARE_TOTAL, "observed");
	double most = MAX(total->estimate[WITHOUT].mean, total->estimate[WITH].mean);
	unsigned int left_out = 0;
	guint i, k;

	for (i = 0; i < comparison->figures->len; i++) {
		const struct figure *family = g_ptr_array_index(comparison->figures, i);
		bool alone;

		if (family->kind != COMPARE_FAMILY)
			continue;
		alone = tolls_of(comparison, family->name) == 1;
		if (!alone && !is_small(family, most))
			print_row(family, "");
		for (k = 0; k < comparison->figures->len; k++) {
			const struct figure *toll = g_ptr_array_index(comparison->figures, k);

			if (toll->kind != COMPARE_TOLL || strcmp(toll->family, family->name))
				continue;
			if (is_small(toll, most))
				left_out++;
			else
				print_row(toll, alone ? "" : "  ");
		}
	}
	print_row(total, "");
	if (left_out)
		printf("(%u toll%s of less than 0.05 %% left out)\n", left_out,
		       left_out == 1 ? "" : "s");
}

void compare_print_text(const struct compare_plan *plan, const struct comparison *comparison,
			const char *losses)
{
	g_autofree char *command = shell_words(plan->command);
	g_autofree char *shown = text_printable(command);
	g_autofree char *sentence = NULL;
	const char *verdict;
	guint i;

	printf("memtoll: %s\n", shown);
	for (i = 0; i < plan->changes->len; i++) {
		g_autofree char *change = text_printable(g_ptr_array_index(plan->changes, i));

		text_wrap(stdout, i ? "            and: " : "         change: ", 17, change);
	}
	printf("         %u run%s of each under the tracer, %u without, alternating after a warm-up\n",
	       plan->runs, plan->runs == 1 ? "" : "s", plan->runs);
	sentence = compare_conclusion(plan, comparison, &verdict);
	puts("\nCONCLUSION");
	text_wrap(stdout, "  ", 2, sentence);
	printf("\n%-16s%14s%14s%14s%12s\n",
	       plan->tracing.duration_ns ? "TOLL a second" : "TOLL a run", "without", "with",
	       "difference", "+- (95 %)");
	print_tolls(comparison);
	printf("\n%-16s%14s%14s%14s%12s\n", "NOT TRACED", "without", "with", "difference",
	       "+- (95 %)");
	for (i = 0; i < comparison->figures->len; i++) {
		const struct figure *figure = g_ptr_array_index(comparison->figures, i);

		if (figure->kind == COMPARE_RUN)
			print_row(figure, "");
	}
	if (losses)
		printf("\n!!! losses exceed 1 %% of what was counted: %s\n", losses);
	if (plan->prefix)
		printf("\nRecordings:\n%s-without-N.memtoll\n%s-with-N.memtoll\n", plan->prefix,
		       plan->prefix);
}

/* SQLite stores NAN as NULL, which JSON has, too. */
static int insert_figure(sqlite3_stmt *insert, const struct figure *figure)
{
	const struct estimate *before = &figure->estimate[WITHOUT],
			      *after = &figure->estimate[WITH];
	const double values[] = {
		before->mean,
		after->mean,
		figure->difference.value,
		figure->difference.low,
		figure->difference.high,
		before->mean != 0 ? after->mean / before->mean : NAN,
		figure->count[WITHOUT],
		figure->count[WITH],
		figure->bytes[WITHOUT],
		figure->bytes[WITH],
	};
	size_t i;

	sqlite3_reset(insert);
	sqlite3_bind_int(insert, 1, figure->kind);
	sqlite3_bind_text(insert, 2, figure->name, -1, SQLITE_STATIC);
	sqlite3_bind_text(insert, 3, figure->family, -1, SQLITE_STATIC);
	for (i = 0; i < G_N_ELEMENTS(values); i++)
		sqlite3_bind_double(insert, 4 + i, values[i]);
	sqlite3_bind_null(insert, 14);
	if (!isnan(figure->difference.low))
		sqlite3_bind_int(insert, 14, difference_proved(&figure->difference));
	return sqlite3_step(insert) == SQLITE_DONE ? 0 : -ENOMEM;
}

static int print_object(sqlite3 *database, const struct compare_plan *plan, const char *verdict,
			const char *sentence, const char *losses)
{
	static const char sql[] =
		"WITH object AS (SELECT *, rowid AS number, json_object('before', before, 'after', after, 'difference',"
		" difference, 'low', low, 'high', high, 'ratio', ratio, 'changed', json(CASE changed"
		" WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END)) AS json FROM figure)"
		"SELECT json_object('format', 1, 'command', ?1, 'changes', json((SELECT"
		" json_group_array(text) FROM (SELECT text FROM change ORDER BY rowid))), 'runs', ?2,"
		" 'per', ?3, 'conclusion', json_object('observed', ?4, 'sentence', ?5),"
		" 'total', json((SELECT json FROM object WHERE kind = 0)),"
		" 'toll', json((SELECT json_group_array(json(json_insert(json, '$.toll', name,"
		" '$.family', family, '$.count_before', count_before, '$.count_after', count_after,"
		" '$.bytes_before', bytes_before, '$.bytes_after', bytes_after))) FROM (SELECT * FROM"
		" object WHERE kind = 2 ORDER BY number))),"
		" 'family', json((SELECT json_group_object(name, json(json)) FROM object WHERE kind = 3)),"
		" 'plain', json((SELECT json_group_object(name, json(json)) FROM object WHERE kind = 1)),"
		" 'losses', ?6)";
	g_autofree char *command = shell_words(plan->command);
	sqlite3_stmt *row = NULL;
	int err = -ENOMEM;

	if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK)
		return err;
	sqlite3_bind_text(row, 1, command, -1, SQLITE_STATIC);
	sqlite3_bind_int(row, 2, plan->runs);
	sqlite3_bind_text(row, 3, plan->tracing.duration_ns ? "second" : "run", -1, SQLITE_STATIC);
	sqlite3_bind_text(row, 4, verdict, -1, SQLITE_STATIC);
	sqlite3_bind_text(row, 5, sentence, -1, SQLITE_STATIC);
	sqlite3_bind_text(row, 6, losses, -1, SQLITE_STATIC);
	if (sqlite3_step(row) == SQLITE_ROW) {
		/* Arguments may hold bytes that are no UTF-8 and would break a JSON reader. */
		g_autofree char *valid =
			g_utf8_make_valid((const char *)sqlite3_column_text(row, 0), -1);

		puts(valid);
		err = 0;
	}
	sqlite3_finalize(row);
	return err;
}

int compare_print_json(const struct compare_plan *plan, const struct comparison *comparison,
		       const char *losses)
{
	static const char schema[] =
		"CREATE TABLE figure (kind, name, family, before, after, difference, low, high, ratio,"
		" count_before, count_after, bytes_before, bytes_after, changed);"
		"CREATE TABLE change (text)";
	g_autofree char *sentence = NULL;
	sqlite3_stmt *insert = NULL, *change = NULL;
	sqlite3 *database = NULL;
	const char *verdict;
	int err = -ENOMEM;
	guint i;

	sentence = compare_conclusion(plan, comparison, &verdict);
	if (sqlite3_open(":memory:", &database) != SQLITE_OK ||
	    sqlite3_exec(database, schema, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(database,
			       "INSERT INTO figure VALUES"
			       " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			       -1, &insert, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(database, "INSERT INTO change VALUES (?)", -1, &change, NULL) !=
		    SQLITE_OK)
		goto out;
	for (i = 0; i < comparison->figures->len; i++)
		if (insert_figure(insert, g_ptr_array_index(comparison->figures, i)))
			goto out;
	for (i = 0; i < plan->changes->len; i++) {
		sqlite3_reset(change);
		sqlite3_bind_text(change, 1, g_ptr_array_index(plan->changes, i), -1,
				  SQLITE_STATIC);
		if (sqlite3_step(change) != SQLITE_DONE)
			goto out;
	}
	err = print_object(database, plan, verdict, sentence, losses);
out:
	if (err)
		message("compare: cannot make JSON: %s", sqlite3_errmsg(database));
	sqlite3_finalize(insert);
	sqlite3_finalize(change);
	sqlite3_close(database);
	return err;
}
