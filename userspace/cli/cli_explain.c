// SPDX-License-Identifier: GPL-2.0
/*
 * cli_explain.c: memtoll explain [CODE [FILE]]: the long form of the advice, from the same tables
 * that a report's advice is made from (advice.sql). Needs no recording and no privileges; with
 * one, its figures are filled in.
 */
#include <argp.h>
#include <glib.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "host/privileges.h"
#include "recording/recording.h"
#include "report/report_views.h"

#define NAMES_NEAR 3

struct arguments {
	const char *code;
	const char *file;
};

struct explain {
	sqlite3 *advice;     /* of this version */
	sqlite3 *recording;  /* or NULL */
	GHashTable *figures; /* name -> text, of the recording */
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	(void)value;
	if (key != ARGP_KEY_ARGS)
		return ARGP_ERR_UNKNOWN;
	if (state->argc - state->next > 2)
		refuse("explain: %s: a code and one file at most", state->argv[state->next + 2]);
	arguments->code = state->argv[state->next];
	if (state->argc - state->next == 2)
		arguments->file = state->argv[state->next + 1];
	state->next = state->argc;
	return 0;
}

static const struct argp argp = {
	.parser = parse_option,
	.args_doc = "[CODE [FILE]]",
	.doc = "Print the long form of a piece of advice; with a recording its figures are filled in. "
	       "Without a code: all codes. Needs no privileges.\v"
	       "Examples:\n"
	       "  memtoll explain\n"
	       "  memtoll explain calloc-reuse-memset\n"
	       "  memtoll explain first-touch server.memtoll\n\n"
	       "Exit status: 0 done, 1 the file cannot be read, 2 usage or no such code.\n",
};

static sqlite3_stmt *query(sqlite3 *database, const char *sql, const char *code)
{
	sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK &&
	    (!code || sqlite3_bind_text(statement, 1, code, -1, SQLITE_STATIC) == SQLITE_OK))
		return statement;
	report_complain(database, sqlite3_errmsg(database));
	sqlite3_finalize(statement);
	return NULL;
}

/* Text of a column, blanks and line breaks as one blank each. Freed by g_free(). */
static char *column_words(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	g_auto(GStrv) words = g_strsplit_set(text ? text : "", " \t\n", -1);
	g_autoptr(GString) line = g_string_new(NULL);
	size_t i;

	for (i = 0; words[i]; i++)
		if (*words[i])
			g_string_append_printf(line, "%s%s", line->len ? " " : "", words[i]);
	return g_strdup(line->str);
}

/* {name} becomes the recording's figure or, where there is none, <name>. Freed by g_free(). */
static char *fill(const struct explain *explain, const char *text)
{
	g_autoptr(GString) filled = g_string_new(NULL);
	const char *open, *close;

	while ((open = strchr(text, '{')) && (close = strchr(open, '}'))) {
		g_autofree char *name = g_strndup(open + 1, close - open - 1);
		const char *figure =
			explain->figures ? g_hash_table_lookup(explain->figures, name) : NULL;

		g_string_append_len(filled, text, open - text);
		if (figure)
			g_string_append(filled, figure);
		else if (!strcmp(name, "command"))
			g_string_append(filled, "COMMAND");
		else
			g_string_append_printf(filled, "<%s>", name);
		text = close + 1;
	}
	g_string_append(filled, text);
	return text_printable(filled->str);
}

static void print_filled(const struct explain *explain, const char *prefix, int indent,
			 const char *words)
{
	g_autofree char *text = fill(explain, words);

	text_wrap(stdout, prefix, indent, text);
}

/* "on glibc from 2.26, before 2.43"; "" where it is for all. Freed by g_free(). */
static char *valid_for(const char *allocator, int since, int before)
{
	g_autoptr(GString) text = g_string_new(allocator && *allocator ? "on " : "");

	g_string_append(text, allocator ? allocator : "");
	if (since)
		g_string_append_printf(text, " from %d.%d", since / 1000, since % 1000);
	if (before)
		g_string_append_printf(text, "%s before %d.%d", since ? "," : "", before / 1000,
				       before % 1000);
	return g_strdup(text->str);
}

/* What is said, each choice with its condition; of the recording: what it says there. */
static int print_says(const struct explain *explain, const char *code)
{
	sqlite3_stmt *row = query(
		explain->advice,
		"SELECT t.text, t.condition, CASE t.allocator WHEN '' THEN CASE WHEN t.since + t.before"
		" THEN a.allocator END ELSE t.allocator END, t.since, t.before, t.choice > 1, t.try"
		" FROM advice_text t JOIN advice a ON a.code = t.code WHERE t.code = ?"
		" ORDER BY t.part, t.choice",
		code);

	if (!row)
		return STATUS_FAILED;
	puts("\nWHAT IT SAYS");
	while (sqlite3_step(row) == SQLITE_ROW) {
		g_autofree char *text = column_words(row, 0), *condition = column_words(row, 1);
		g_autofree char *valid =
			valid_for((const char *)sqlite3_column_text(row, 2),
				  sqlite3_column_int(row, 3), sqlite3_column_int(row, 4));
		g_autofree char *try = column_words(row, 6);
		bool always = !strcmp(condition, "1");
		g_autofree char *when = g_strdup_printf(
			"%s%s%s%s%s", sqlite3_column_int(row, 5) ? "otherwise" : "",
			sqlite3_column_int(row, 5) && (!always || *valid) ? ", " : "", valid,
			*valid && !always ? ", " : "", always ? "" : "if ");

		g_autofree char *whole =
			g_strconcat(when, always ? *when ? "" : "always" : condition, ":", NULL);

		text_wrap(stdout, "  ", 4, whole);
		print_filled(explain, "    ", 4, text);
		if (*try) {
			g_autofree char *line =
				g_strdup_printf("memtoll compare %s -- {command}", try);

			print_filled(explain, "    Try: ", 4, line);
		}
	}
	sqlite3_finalize(row);
	return STATUS_DONE;
}

/* Whether the recording gets this advice, and if not, why. */
static int print_state(const struct explain *explain, const char *code, const char *file)
{
	sqlite3_stmt *row = query(
		explain->recording,
		"SELECT given, applies, valid, CASE WHEN kind = '' THEN 'an unknown allocator'"
		" WHEN version THEN PRINTF('%s %d.%d', kind, version / 1000, version % 1000)"
		" ELSE kind || ' of an unknown version' END, gain, bound, opposed_by"
		" FROM temp.advice_state WHERE code = ?",
		code);
	g_autofree char *shown = text_printable(file), *line = NULL;
	bool found;

	if (!row)
		return STATUS_FAILED;
	found = sqlite3_step(row) == SQLITE_ROW;
	printf("\nIN %s\n", shown);
	if (!found)
		line = g_strdup("Not given: its figures cannot be read.");
	else if (sqlite3_column_int(row, 0))
		line = g_strdup_printf("Given: it can save at most %.0f %% of the observed time.",
				       100 * sqlite3_column_double(row, 4));
	else if (!sqlite3_column_int(row, 1))
		line = g_strdup("Not given: its condition does not hold.");
	else if (!sqlite3_column_int(row, 2))
		line = g_strdup_printf("Not given: not valid for %s.", sqlite3_column_text(row, 3));
	else if (sqlite3_column_type(row, 6) != SQLITE_NULL)
		line = g_strdup_printf("Not given: it would undo %s, which can save more.",
				       sqlite3_column_text(row, 6));
	else
		line = g_strdup_printf("Not given: it could save at most %.1f %% of the observed"
				       " time.",
				       100 * sqlite3_column_double(row, 4));
	text_wrap(stdout, "  ", 2, line);
	sqlite3_finalize(row);
	return STATUS_DONE;
}

static void print_paragraphs(const char *text)
{
	g_auto(GStrv) paragraphs = g_strsplit(text, "\n\n", -1);
	size_t i;

	for (i = 0; paragraphs[i]; i++) {
		g_autofree char *line = g_strdelimit(g_strdup(paragraphs[i]), "\t\n", ' ');
		g_auto(GStrv) words = g_strsplit(line, " ", -1);
		g_autoptr(GString) joined = g_string_new(NULL);
		size_t k;

		for (k = 0; words[k]; k++)
			if (*words[k])
				g_string_append_printf(joined, "%s%s", joined->len ? " " : "",
						       words[k]);
		putchar('\n');
		text_wrap(stdout, "  ", 2, joined->str);
	}
}

/* row: as print_code() asks for it. */
static int print_row(const struct explain *explain, const struct arguments *arguments,
		     sqlite3_stmt *row)
{
	g_autofree char *condition = column_words(row, 2), *gain = column_words(row, 3);
	g_autofree char *evidence = column_words(row, 8), *cost = column_words(row, 9);
	g_autofree char *valid = valid_for((const char *)sqlite3_column_text(row, 5),
					   sqlite3_column_int(row, 6), sqlite3_column_int(row, 7));

	printf("%s: %s\n", arguments->code, sqlite3_column_text(row, 0));
	if (explain->recording && print_state(explain, arguments->code, arguments->file))
		return STATUS_FAILED;
	print_paragraphs((const char *)sqlite3_column_text(row, 1));
	puts("\nWHEN IT IS GIVEN (expressions over view weighed of a recording)");
	text_wrap(stdout, "  Condition: ", 4, condition);
	text_wrap(stdout, "  Can save:  ", 4, gain);
	printf("  Above:     %.0f %% of the observed time\n", 100 * sqlite3_column_double(row, 4));
	printf("  Valid:     %s\n", *valid ? valid : "for every allocator");
	if (print_says(explain, arguments->code))
		return STATUS_FAILED;
	puts("\nEVIDENCE");
	print_filled(explain, "  ", 2, evidence);
	puts("\nIF IT IS WRONG");
	print_filled(explain, "  ", 2, cost);
	return STATUS_DONE;
}

static int print_code(const struct explain *explain, const struct arguments *arguments)
{
	sqlite3_stmt *row = query(
		explain->advice,
		"SELECT title, explain, condition, gain, bound, allocator, since, before, evidence,"
		" cost FROM advice WHERE code = ?",
		arguments->code);
	int status = STATUS_FAILED;

	if (row && sqlite3_step(row) == SQLITE_ROW)
		status = print_row(explain, arguments, row);
	sqlite3_finalize(row);
	return status;
}

static int print_list(sqlite3 *advice)
{
	sqlite3_stmt *row = query(advice, "SELECT code, title FROM advice ORDER BY position", NULL);

	if (!row)
		return STATUS_FAILED;
	while (sqlite3_step(row) == SQLITE_ROW)
		printf("%-22s %s\n", sqlite3_column_text(row, 0), sqlite3_column_text(row, 1));
	sqlite3_finalize(row);
	return STATUS_DONE;
}

/* The distance to the whole code, or to some first words of it: "calloc". */
static size_t nearest_start(const char *typed, const char *code)
{
	size_t least = text_distance(typed, code);
	const char *dash;

	for (dash = strchr(code, '-'); dash; dash = strchr(dash + 1, '-')) {
		g_autofree char *start = g_strndup(code, dash - code);

		least = MIN(least, text_distance(typed, start));
	}
	return least;
}

struct near {
	char *code;
	size_t distance;
};

static int by_distance(const void *one, const void *two)
{
	const struct near *a = one, *b = two;

	return (a->distance > b->distance) - (a->distance < b->distance);
}

static void free_near(void *element)
{
	g_free(((struct near *)element)->code);
}

/* STATUS_DONE, or STATUS_USAGE after a line with the nearest names. */
static int check_code(sqlite3 *advice, const char *code)
{
	g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(struct near));
	g_autoptr(GString) names = g_string_new(NULL);
	sqlite3_stmt *row = query(advice, "SELECT code FROM advice ORDER BY position", NULL);
	bool found = false;
	guint i;

	g_array_set_clear_func(all, free_near);
	while (row && sqlite3_step(row) == SQLITE_ROW) {
		struct near near = { .code = g_strdup((const char *)sqlite3_column_text(row, 0)) };

		near.distance = nearest_start(code, near.code);
		found |= !strcmp(near.code, code);
		g_array_append_val(all, near);
	}
	sqlite3_finalize(row);
	if (found)
		return STATUS_DONE;
	g_array_sort(all, by_distance);
	for (i = 0; i < MIN(all->len, NAMES_NEAR); i++)
		g_string_append_printf(names, "%s%s", i ? ", " : "",
				       g_array_index(all, struct near, i).code);
	message("explain: no code '%s'; nearest: %s (memtoll explain lists all)", code, names->str);
	return STATUS_USAGE;
}

/* The recording's figures and what became of its advice. */
static int read_recording(struct explain *explain, const char *file)
{
	sqlite3_stmt *row;

	privileges_keep(PRIVILEGES_READ);
	explain->recording = recording_open(file);
	privileges_keep(PRIVILEGES_NONE);
	if (!explain->recording)
		return STATUS_FAILED;
	if (report_views_make(explain->recording, "advice_state", 0))
		return STATUS_FAILED;
	explain->figures = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	row = query(explain->recording, "SELECT name, text FROM temp.figure", NULL);
	while (row && sqlite3_step(row) == SQLITE_ROW)
		g_hash_table_insert(explain->figures,
				    g_strdup((const char *)sqlite3_column_text(row, 0)),
				    g_strdup((const char *)sqlite3_column_text(row, 1)));
	sqlite3_finalize(row);
	return row ? STATUS_DONE : STATUS_FAILED;
}

int cli_explain(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	struct explain explain = { 0 };
	struct recording *own = NULL;
	int status;

	status = parse_arguments(&argp, argc, argv, &arguments);
	if (status)
		return status;
	own = recording_create(NULL, false);
	if (!own)
		return STATUS_FAILED;
	explain.advice = recording_database(own);
	if (arguments.code)
		status = check_code(explain.advice, arguments.code);
	if (!status && arguments.file)
		status = read_recording(&explain, arguments.file);
	if (!status)
		status = arguments.code ? print_code(&explain, &arguments) :
					  print_list(explain.advice);
	if (!status && report_flush(stdout))
		status = STATUS_FAILED;
	if (explain.figures)
		g_hash_table_destroy(explain.figures);
	sqlite3_close(explain.recording);
	recording_close(own);
	return status;
}
