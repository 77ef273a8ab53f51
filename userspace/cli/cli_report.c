// SPDX-License-Identifier: GPL-2.0
/*
 * cli_report.c: memtoll report FILE [--full] [--json] [--brief N] [--sites N] [--folded TOLL], and
 * memtoll report --baseline OLD [--format FORMAT | --json] FILE.
 */
#include <argp.h>
#include <glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/message.h"
#include "base/options.h"
#include "base/shell.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/paged.h"
#include "host/privileges.h"
#include "recording/recording.h"
#include "recording/recording_redact.h"
#include "recording/recording_schema.h"
#include "report/finding.h"
#include "report/growth.h"
#include "report/report.h"

#define SITES_TEXT 10
#define SEE_HELP "(see memtoll report --help)"

struct arguments {
	const char *file;
	char *newest; /* the file, where none was named */
	const char *folded;
	const char *baseline;
	enum finding_format format;
	bool format_given;
	unsigned int brief; /* tokens; 0: not asked for */
	struct report_options report;
	bool full;
	bool json;
	bool schema;
	bool views;
	bool redact;
};

enum option_key {
	OPTION_FULL = 256,
	OPTION_COMPUTE,
	OPTION_SCHEMA,
	OPTION_VIEWS,
	OPTION_REDACT,
	OPTION_BRIEF,
	OPTION_BASELINE,
	OPTION_FORMAT,
};

static const struct argp_option options[] = {
	{ "full", OPTION_FULL, NULL, 0,
	  "everything: evidence of the advice, all tolls, whole stacks, checks and notes", 0 },
	{ "compute", OPTION_COMPUTE, NULL, 0, "list also where the program computes", 0 },
	{ "json", 'j', NULL, 0, "print one JSON object; with --baseline that of what grew", 0 },
	{ "redact", OPTION_REDACT, NULL, 0,
	  "for others: pseudonyms for arguments, names of files, programs, containers and the host, and "
	  "for addresses",
	  0 },
	{ "schema", OPTION_SCHEMA, NULL, 0,
	  "print the JSON Schema of --json without --baseline; needs no FILE", 0 },
	{ "views", OPTION_VIEWS, NULL, 0,
	  "print the SQL that makes the views tables, for the sqlite3 shell; needs no FILE", 0 },
	{ "sites", 's', "N", 0,
	  "print the N most expensive sites; 0: all (default: as many as the screen has room"
	  " for, --full: 10, JSON: all)",
	  0 },
	{ "brief", OPTION_BRIEF, "N", 0,
	  "for a script or a language model: the diagnosis in N tokens at most, lines KEY: TEXT",
	  0 },
	{ "baseline", OPTION_BASELINE, "RECORDING", 0,
	  "what does more memory work than in this one: where, before and after, likely why", 0 },
	{ "format", OPTION_FORMAT, "FORMAT", 0,
	  "of --baseline: text (default), markdown (pull request), junit (XML), github (annotations), "
	  "gitlab (code quality, JSON)",
	  0 },
	{ "folded", 'f', "TOLL", 0, "print a toll's allocation stacks, folded, in microseconds",
	  0 },
	{ 0 },
};

/*
 * As perf report takes what perf record has just written: of this directory, and not through a link,
 * which is a name for something elsewhere. Freed by the caller.
 */
static char *newest_recording(void)
{
	GDir *directory = g_dir_open(".", 0, NULL);
	struct timespec best = { 0 };
	const char *name;
	char *newest = NULL;
	struct stat status;

	while (directory && (name = g_dir_read_name(directory))) {
		if (!g_str_has_suffix(name, ".memtoll") || lstat(name, &status) ||
		    !S_ISREG(status.st_mode) ||
		    (newest && (status.st_mtim.tv_sec < best.tv_sec ||
				(status.st_mtim.tv_sec == best.tv_sec &&
				 status.st_mtim.tv_nsec <= best.tv_nsec))))
			continue;
		g_free(newest);
		newest = g_strdup(name);
		best = status.st_mtim;
	}
	if (directory)
		g_dir_close(directory);
	if (!newest)
		refuse("report: name the recording: no *.memtoll is in this directory " SEE_HELP);
	message("report: %s, the newest here", newest);
	return newest;
}

static void parse_format(const char *value, struct arguments *arguments)
{
	if (!finding_format_parse(value, &arguments->format))
		refuse("report: --format %s: none of " FINDING_FORMATS " " SEE_HELP, value);
	arguments->format_given = true;
}

static void parse_brief(const char *value, struct arguments *arguments)
{
	if (!parse_count(value, &arguments->brief) || arguments->brief < REPORT_BRIEF_LEAST)
		refuse("report: --brief %s: not a number of tokens from %d on " SEE_HELP, value,
		       REPORT_BRIEF_LEAST);
}

/* What goes together; the file, where none was named. */
static void finish_options(struct arguments *arguments)
{
	unsigned int kinds =
		!!arguments->folded + !!arguments->brief + !!arguments->baseline + arguments->full;

	if (arguments->folded && arguments->json)
		refuse("report: --json and --folded exclude each other " SEE_HELP);
	if (arguments->brief && kinds + arguments->json > 1)
		refuse("report: --brief excludes --full, --json, --folded and --baseline " SEE_HELP);
	if (arguments->baseline && kinds > 1)
		refuse("report: --baseline excludes --full, --folded and --brief " SEE_HELP);
	if (arguments->format_given && arguments->json)
		refuse("report: --format and --json exclude each other " SEE_HELP);
	if (arguments->format_given && !arguments->baseline)
		refuse("report: --format is of --baseline " SEE_HELP);
	if (arguments->baseline && arguments->redact)
		refuse("report: --redact and --baseline exclude each other: pseudonyms differ between two "
		       "recordings " SEE_HELP);
	if (arguments->baseline && arguments->file && !strcmp(arguments->baseline, "-") &&
	    !strcmp(arguments->file, "-"))
		refuse("report: --baseline - and FILE -: standard input is one recording " SEE_HELP);
	if (arguments->schema && arguments->views)
		refuse("report: --schema and --views exclude each other " SEE_HELP);
	if (!arguments->schema && !arguments->views && !arguments->file)
		arguments->file = arguments->newest = newest_recording();
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case OPTION_FULL:
		arguments->full = true;
		return 0;
	case OPTION_COMPUTE:
		arguments->report.compute = true;
		return 0;
	case 'j':
		arguments->json = true;
		return 0;
	case OPTION_SCHEMA:
		arguments->schema = true;
		return 0;
	case OPTION_VIEWS:
		arguments->views = true;
		return 0;
	case OPTION_REDACT:
		arguments->redact = true;
		return 0;
	case 's':
		if (!parse_count(value, &arguments->report.sites))
			refuse("report: --sites %s: not a number of sites " SEE_HELP, value);
		arguments->report.sites_given = true;
		return 0;
	case 'f':
		arguments->folded = value;
		return 0;
	case ARGP_KEY_ARG:
		take_recording(&arguments->file, "report", value);
		return 0;
	case OPTION_BRIEF:
		parse_brief(value, arguments);
		return 0;
	case OPTION_BASELINE:
		arguments->baseline = value;
		return 0;
	case OPTION_FORMAT:
		parse_format(value, arguments);
		return 0;
	case ARGP_KEY_END:
		finish_options(arguments);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "[FILE]",
	.doc = "Print what a recording says: shares, verdict, advice, sites, in one screen. FILE -: the "
	       "recording is read from standard input; without FILE: the newest *.memtoll of this "
	       "directory.\v"
	       "EXAMPLES\n"
	       "  memtoll report server.memtoll\n"
	       "  memtoll report --full server.memtoll\n"
	       "  ssh server cat server.memtoll | memtoll report -\n"
	       "  memtoll report server.memtoll --json | jq .verdict\n"
	       "  memtoll report server.memtoll --folded zero.kernel > zero.folded\n"
	       "  memtoll report server.memtoll --brief 1000\n"
	       "  memtoll report --baseline before.memtoll after.memtoll --format markdown\n\n"
	       "A token stands for one byte at least: --brief N prints N - 1 bytes of ASCII at most, so that "
	       "no tokenizer makes more than N of it. What has no room is left out from the end and "
	       "named in the line left_out.\n\n"
	       "Exit status: 0 done, whatever grew; 1 a file cannot be read, or two do not measure the "
	       "same; 2 usage; 4 of --baseline: done, but losses of one exceed 1 %.\n",
};

static bool is_toll(sqlite3 *database, const char *toll)
{
	g_autofree char *kinds = recording_schema_query("toll_kind");
	g_autofree char *query = g_strdup_printf("SELECT 1 FROM (%s) WHERE toll = ?", kinds);
	sqlite3_stmt *statement = NULL;
	bool found;

	found = sqlite3_prepare_v2(database, query, -1, &statement, NULL) == SQLITE_OK &&
		sqlite3_bind_text(statement, 1, toll, -1, SQLITE_STATIC) == SQLITE_OK &&
		sqlite3_step(statement) == SQLITE_ROW;
	sqlite3_finalize(statement);
	return found;
}

static void refuse_toll(sqlite3 *database, const char *toll)
{
	g_autofree char *kinds = recording_schema_query("toll_kind");
	g_autofree char *query = g_strdup_printf("SELECT toll FROM (%s) ORDER BY position", kinds);
	g_autoptr(GString) names = g_string_new(NULL);
	sqlite3_stmt *statement = NULL;

	sqlite3_prepare_v2(database, query, -1, &statement, NULL);
	while (statement && sqlite3_step(statement) == SQLITE_ROW)
		g_string_append_printf(names, "%s%s", names->len ? ", " : "",
				       (const char *)sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
	message("report: --folded %s: no such toll (%s)", toll, names->str);
}

static int print_text(sqlite3 *database, struct arguments *arguments)
{
	g_autofree char *quoted = NULL, *line = NULL, *command = NULL;

	if (!arguments->full) {
		/* What the recording is called here is its own business, too. */
		if (arguments->redact) {
			arguments->report.full_command = "memtoll report --full --redact FILE";
			return report_short(database, &arguments->report, stdout);
		}
		quoted = shell_words((char *const[]){ (char *)arguments->file, NULL });
		line = g_strdup_printf("memtoll report --full %s", quoted);
		command = text_printable(line);
		arguments->report.full_command = command;
		return report_short(database, &arguments->report, stdout);
	}
	return print_paged(database, &arguments->report);
}

/* NULL after a message. */
static sqlite3 *open_recording(const char *file, const struct arguments *arguments)
{
	sqlite3 *database = strcmp(file, "-") ? recording_open(file) : recording_open_stdin();
	sqlite3 *redacted;

	if (!database || !arguments->redact)
		return database;
	redacted = recording_redacted(database);
	sqlite3_close(database);
	return redacted;
}

/* Against an earlier recording. Exit status. */
static int show_growth(const struct arguments *arguments)
{
	struct growth_side before = { .path = arguments->baseline },
			   after = { .path = arguments->file };
	struct finding_list *list = NULL;
	int status = STATUS_FAILED;
	bool lossy = false;

	privileges_keep(PRIVILEGES_READ);
	before.database = open_recording(before.path, arguments);
	if (before.database)
		after.database = open_recording(after.path, arguments);
	privileges_keep(PRIVILEGES_NONE);
	if (after.database)
		list = growth_find(&before, &after, &lossy);
	if (list &&
	    !finding_print(list, arguments->json ? FINDING_JSON : arguments->format, stdout))
		status = lossy ? STATUS_LOSSES : STATUS_DONE;
	finding_list_free(list);
	sqlite3_close(after.database);
	sqlite3_close(before.database);
	return status;
}

static int show(struct arguments *arguments)
{
	int status = STATUS_FAILED, err;
	sqlite3 *database;

	/* Whose recording it is, and what is in it, root cannot know. */
	privileges_keep(arguments->full ? PRIVILEGES_SHOW : PRIVILEGES_READ);
	database = open_recording(arguments->file, arguments);
	privileges_keep(arguments->full ? PRIVILEGES_LEAVE : PRIVILEGES_NONE);
	if (!database)
		return STATUS_FAILED;
	if (arguments->folded && !is_toll(database, arguments->folded)) {
		refuse_toll(database, arguments->folded);
		status = STATUS_USAGE;
		goto out;
	}
	if (!arguments->report.sites_given && !arguments->json)
		arguments->report.sites = SITES_TEXT;
	arguments->report.color = wants_color();
	terminal_size(&arguments->report.columns, &arguments->report.lines);
	if (arguments->folded)
		err = report_folded(database, arguments->folded, stdout);
	else if (arguments->brief)
		err = report_brief(database, arguments->brief, stdout);
	else if (arguments->json)
		err = report_json(database, &arguments->report, stdout);
	else
		err = print_text(database, arguments);
	if (!err)
		status = STATUS_DONE;
out:
	sqlite3_close(database);
	return status;
}

int cli_report(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	int status;

	status = parse_arguments(&argp, argc, argv, &arguments);
	if (status)
		return status;
	if (arguments.schema)
		return report_print_schema(stdout) ? STATUS_FAILED : STATUS_DONE;
	if (arguments.views)
		return report_print_views(stdout) ? STATUS_FAILED : STATUS_DONE;
	status = arguments.baseline ? show_growth(&arguments) : show(&arguments);
	g_free(arguments.newest);
	return status;
}
