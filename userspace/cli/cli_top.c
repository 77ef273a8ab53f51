// SPDX-License-Identifier: GPL-2.0
/* cli_top.c: `memtoll top`: what memory costs, while it goes on. */
#include <argp.h>
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "base/options.h"
#include "base/shell.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/target_options.h"
#include "host/privileges.h"
#include "recording/recording.h"
#include "report/report.h"
#include "session/session.h"
#include "targets/launch.h"
#include "top/top_lines.h"
#include "top/top_live.h"
#include "top/top_machine.h"
#include "top/top_pseudonyms.h"
#include "top/top_show.h"

enum {
	OPTION_FORCE = 300,
	OPTION_MAX_SIZE,
	OPTION_BATCH,
	OPTION_JSON,
	OPTION_COUNT,
	OPTION_SCHEMA,
	OPTION_REDACT,
};

#define MACHINE_LIMIT 0.01 /* where none is given */
#define INTERVAL_DEFAULT_NS 1000000000ULL
#define INTERVAL_LEAST_NS 500000000ULL

struct top_options {
	struct target_options target;
	bool all;
	const char *output;
	enum top_mode mode;
	unsigned int count;
	bool schema;
	struct session_config session;
	struct top_show *show;
	struct top_live *live;
	struct top_pseudonyms *pseudonyms;
};

static const struct argp_option top_argp_options[] = {
	TARGET_OPTIONS,
	{ "all", 'a', NULL, 0, "the whole machine, by tracepoints alone (default: no target)", 1 },
	{ NULL, 0, NULL, 0, "Output:", 3 },
	{ "interval", 'I', "TIME", 0, "between two looks; default: 1s, at least 500ms", 3 },
	{ "batch", OPTION_BATCH, NULL, 0, "lines instead of a screen", 3 },
	{ "json", OPTION_JSON, NULL, 0, "a JSON object a line instead of a screen", 3 },
	{ "count", OPTION_COUNT, "N", 0, "end after so many intervals", 3 },
	{ "schema", OPTION_SCHEMA, NULL, 0,
	  "print the JSON Schema of the lines of --json; needs no target", 3 },
	{ "output", 'o', "FILE", 0, "keep the recording of a target in FILE", 3 },
	{ "force", OPTION_FORCE, NULL, 0, "replace FILE if it exists", 3 },
	{ "max-size", OPTION_MAX_SIZE, "SIZE", 0,
	  "end before FILE and its journal become larger: 100M, 2G; default: no limit", 3 },
	{ "redact", OPTION_REDACT, NULL, 0,
	  "for others: pseudonyms for arguments, names of files, programs, containers and cgroups, "
	  "on the screen, in lines and in FILE",
	  3 },
	{ 0 },
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct top_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &options->session;
		break;
	case 'a':
		options->all = true;
		break;
	case 'I':
		if (!parse_duration(value, &options->session.interval_ns) ||
		    options->session.interval_ns < INTERVAL_LEAST_NS)
			refuse("-I '%s' is not a time of at least 500ms; use 1s or 5s", value);
		break;
	case OPTION_BATCH:
		options->mode = TOP_BATCH;
		break;
	case OPTION_JSON:
		options->mode = TOP_JSON;
		break;
	case OPTION_COUNT:
		if (!parse_count(value, &options->count) || !options->count)
			refuse("--count '%s' is not a number of intervals", value);
		break;
	case OPTION_SCHEMA:
		options->schema = true;
		break;
	case 'o':
		options->output = value;
		break;
	case OPTION_FORCE:
		options->session.force = true;
		break;
	case OPTION_MAX_SIZE:
		options->session.max_bytes = take_max_size(value);
		break;
	case OPTION_REDACT:
		options->session.redact = true;
		break;
	default:
		return take_target(&options->target, key, value, state);
	}
	return 0;
}

static const char top_doc[] =
	"Show what memory costs a process, a cgroup or a command while it goes on; without one, what "
	"the whole machine zeroes, swaps and pushes out. ? shows the keys, q ends."
	"\vExamples:\n"
	"  memtoll top -p 1234\n"
	"  memtoll top -c system.slice/mariadb.service -o db.memtoll\n"
	"  memtoll top\n"
	"  memtoll top --json --count 10 -p 1234\n";

static int check(const struct top_options *options)
{
	if (options->all && has_target(&options->target)) {
		message("-a is the whole machine; leave it out, or -p, -n, -c and the command");
		return STATUS_USAGE;
	}
	if (has_target(&options->target) && want_target(&options->target))
		return STATUS_USAGE;
	if (!has_target(&options->target) && options->output) {
		message("-o keeps the recording of a target; the machine's figures are kept by --json");
		return STATUS_USAGE;
	}
	if (!options->output && (options->session.force || options->session.max_bytes)) {
		message("--force and --max-size are about the file of -o FILE, and none is named");
		return STATUS_USAGE;
	}
	return STATUS_DONE;
}

static int parse(int argc, char **argv, struct top_options *options)
{
	const struct argp_child children[] = { { &tracing_argp, 0, NULL, 0 }, { 0 } };
	const struct argp argp = {
		.children = children,
		.options = top_argp_options,
		.parser = parse_option,
		.args_doc = "[-- COMMAND ARGS...]",
		.doc = top_doc,
	};

	if (parse_arguments(&argp, argc, argv, options))
		return STATUS_USAGE;
	return options->schema ? STATUS_DONE : check(options);
}

static void on_interval(void *context, const struct interval *interval)
{
	struct top_options *options = context;
	char *note;

	top_show_snapshot(options->show, top_live_snapshot(options->live, interval));
	while ((note = top_show_mark(options->show))) {
		if (top_live_mark(interval, note))
			message("the mark could not be recorded");
		g_free(note);
	}
}

/* What is followed, in few words. */
static char *describe(const struct top_options *options)
{
	const struct target_options *target = &options->target;

	if (options->session.redact && !target->pids)
		return g_strdup(target->cgroup ? "group" : "program");
	if (target->command)
		return g_path_get_basename(target->command[0]);
	if (target->pids)
		return g_strdup_printf("pid %s", target->pids);
	return g_strdup(target->name ? target->name : target->cgroup);
}

static int watch_target(struct top_options *options)
{
	struct session_config *config = &options->session;
	g_autofree char *target = describe(options);
	struct session *session;
	int status, wait_status = 0;

	status = find_target(&options->target, config);
	if (status)
		return status;
	config->output = options->output;
	config->on_interval = on_interval;
	config->interval_context = options;
	config->interval_live = true;
	options->live =
		top_live_new(target, config->overhead_limit, options->output, options->pseudonyms);
	options->show = top_show_open(options->mode, options->count);
	if (!options->show) {
		top_live_free(options->live);
		return STATUS_FAILED;
	}
	session = session_new(config);
	status = session_record(session);
	session_close(session);
	if (!top_show_close(options->show, !status && !config->duration_ns) && !status)
		status = STATUS_FAILED;
	top_live_free(options->live);
	privileges_keep(PRIVILEGES_NONE);
	if (!status && options->output)
		message("wrote %s", options->output);
	if (!status && session_command_status(session, &wait_status))
		status = shell_exit_status(wait_status);
	session_free(session);
	return status;
}

static int watch_machine(struct top_options *options, double limit)
{
	const struct machine_config config = {
		.limit = limit,
		.interval_ns = options->session.interval_ns,
		.duration_ns = options->session.duration_ns,
		.pseudonyms = options->pseudonyms,
	};
	int status;

	options->show = top_show_open(options->mode, options->count);
	if (!options->show)
		return STATUS_FAILED;
	status = top_machine_run(&config, options->show);
	if (!top_show_close(options->show, false) && !status)
		status = STATUS_FAILED;
	return status;
}

int cli_top(int argc, char **argv)
{
	g_autofree char *line = g_strjoinv(" ", argv);
	g_autofree char *command_line = g_strdup_printf("memtoll %s", line);
	struct top_options options = { .mode = TOP_SCREEN };
	const char *limit_unset;
	int status;

	tracing_defaults(&options.session);
	options.session.command_line = command_line;
	options.session.interval_ns = INTERVAL_DEFAULT_NS;
	limit_unset = options.session.overhead_limit_text;
	status = parse(argc, argv, &options);
	if (status)
		return status;
	if (options.schema)
		return top_lines_schema(stdout) ? STATUS_FAILED : STATUS_DONE;
	if (options.session.redact)
		options.pseudonyms = top_pseudonyms_new();
	status = check_privileges();
	if (!status && has_target(&options.target))
		status = watch_target(&options);
	else if (!status)
		status =
			watch_machine(&options, options.session.overhead_limit_text == limit_unset ?
							MACHINE_LIMIT :
							options.session.overhead_limit);
	top_pseudonyms_free(options.pseudonyms);
	clear_target(&options.target);
	return status;
}
