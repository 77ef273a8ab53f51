// SPDX-License-Identifier: GPL-2.0
/*
 * cli_gate.c: memtoll gate --budget FILE -- COMMAND and the like: hold what memory costs against
 * bounds, and say by the exit status whether it is within.
 */
#include <argp.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "base/shell.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "gate/bounds_write.h"
#include "gate/gate_print.h"
#include "gate/gate_run.h"
#include "host/output_file.h"
#include "host/privileges.h"
#include "report/report_views.h"

#define BUDGET_DEFAULT "memtoll.toml"
#define RUNS_DEFAULT 3
#define RUNS_OF_MORE 5 /* of --init and --time */
#define RUNS_MOST 1000
#define RUNS_LEAST_OF_TIME 3 /* fewer do not tell how a time varies */

enum {
	OPTION_BUDGET = 512,
	OPTION_BASELINE,
	OPTION_AGAINST,
	OPTION_INIT,
	OPTION_TIME,
	OPTION_RUNS,
	OPTION_FORCE,
};

struct arguments {
	const char *budget;
	GPtrArray *baselines, *recordings; /* paths */
	char **against, **command;
	const char *against_text;
	const char *prefix;
	unsigned int runs; /* 0: not given */
	bool init, time, json, force;
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "Bounds:", 1 },
	{ "budget", OPTION_BUDGET, "FILE", 0,
	  "the bounds, in TOML; default: memtoll.toml, or the usual ones where there is a baseline",
	  1 },
	{ "baseline", OPTION_BASELINE, "RECORDING", 0,
	  "what counts are compared with; several: runs of the same program", 1 },
	{ "against", OPTION_AGAINST, "COMMAND", 0,
	  "run that, in turns with the command, and compare with it", 1 },
	{ "init", OPTION_INIT, NULL, 0,
	  "write a budget, to FILE or stdout, from recordings or from runs of a command", 1 },
	{ NULL, 0, NULL, 0, "Output and runs:", 2 },
	{ "runs", OPTION_RUNS, "N", 0,
	  "what is over is run again, up to N runs: over is what is over in all; default: 3; --init, "
	  "--time: 5",
	  2 },
	{ "time", OPTION_TIME, NULL, 0, "judge bounds on times, too, by N runs: 3 at least", 2 },
	{ "output", 'o', "PREFIX", 0, "keep the recordings: PREFIX-now-1.memtoll ...", 2 },
	{ "force", OPTION_FORCE, NULL, 0, "replace files that exist", 2 },
	{ "json", 'j', NULL, 0, "one JSON object instead of text", 2 },
	{ 0 },
};

static void take_against(const char *text, struct arguments *arguments)
{
	g_autoptr(GError) error = NULL;

	if (arguments->against)
		refuse("gate: --against: one command");
	if (!g_shell_parse_argv(text, NULL, &arguments->against, &error))
		refuse("gate: --against '%s' is no command: %s", text, error->message);
	arguments->against_text = text;
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;
	guint64 number;

	switch (key) {
	case OPTION_BUDGET:
		if (arguments->budget)
			refuse("gate: --budget %s: one budget at a time", value);
		arguments->budget = value;
		break;
	case OPTION_BASELINE:
		g_ptr_array_add(arguments->baselines, value);
		break;
	case OPTION_AGAINST:
		take_against(value, arguments);
		break;
	case OPTION_INIT:
		arguments->init = true;
		break;
	case OPTION_TIME:
		arguments->time = true;
		break;
	case OPTION_RUNS:
		if (!g_ascii_string_to_unsigned(value, 10, 1, RUNS_MOST, &number, NULL))
			refuse("gate: --runs '%s' is not a number from 1 to %d", value, RUNS_MOST);
		arguments->runs = number;
		break;
	case 'o':
		if (!*value)
			refuse("gate: -o '' is not the beginning of a name");
		arguments->prefix = value;
		break;
	case OPTION_FORCE:
		arguments->force = true;
		break;
	case 'j':
		arguments->json = true;
		break;
	case ARGP_KEY_ARG:
		/* Behind "--" is a command, and before it are recordings. */
		if (!state->quoted || state->next <= state->quoted) {
			g_ptr_array_add(arguments->recordings, value);
			break;
		}
		arguments->command = state->argv + state->next - 1;
		state->next = state->argc;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "[RECORDING...] [-- COMMAND ARGS...]",
	.doc = "Hold what a command's memory costs, or what recordings say of it, against a budget: "
	       "exact counts, which do not depend on how fast the machine is. Only what the bounds "
	       "need is traced. The command reads nothing, and its output goes to stderr.\v"
	       "Examples:\n"
	       "  memtoll gate --init --budget memtoll.toml -- ./program\n"
	       "  memtoll gate --budget memtoll.toml -- ./program\n"
	       "  memtoll gate --baseline main.memtoll branch.memtoll\n"
	       "  memtoll gate --against ./program.old -- ./program\n\n"
	       "Exit status: 0 within the budget; 1 the command or a recording failed, or it was\n"
	       "interrupted; 2 usage; 3 this kernel or these privileges cannot do it; 4 nothing\n"
	       "is over, but too much was lost to show that all is within; 5 over the budget.\n",
};

/* One message where they contradict each other. */
static void check(const struct arguments *arguments)
{
	if (arguments->command && arguments->recordings->len)
		refuse("gate: %s: recordings, or -- COMMAND, not both",
		       (char *)g_ptr_array_index(arguments->recordings, 0));
	if (!arguments->command && !arguments->recordings->len)
		refuse("gate: nothing to judge; name a recording, or end with -- COMMAND ARGS...");
	if (arguments->against && arguments->baselines->len)
		refuse("gate: --against and --baseline: one of them");
	if (arguments->init && (arguments->against || arguments->baselines->len))
		refuse("gate: --init takes the runs as they are, without --baseline or --against");
	if (arguments->init && arguments->time)
		refuse("gate: --init bounds counts; a bound on a time is written by hand");
	if (arguments->init && arguments->json)
		refuse("gate: --init writes TOML, without --json");
	if (arguments->command)
		return;
	if (arguments->against || arguments->time || arguments->runs || arguments->prefix)
		refuse("gate: %s is of runs; end with -- COMMAND ARGS...",
		       arguments->against ? "--against" :
		       arguments->time	  ? "--time" :
		       arguments->runs	  ? "--runs" :
					    "-o");
}

/* What the bounds need that was not given: an exit status, after one message. */
static int check_bounds(const struct arguments *arguments, const struct bounds *budget)
{
	const struct bound *baseline = bounds_against_baseline(budget);
	const struct bound *time = bounds_on_time(budget);
	guint i;

	if (baseline && !arguments->baselines->len && !arguments->against) {
		message("gate: %s:%u: %s is against a baseline; use --baseline RECORDING or "
			"--against COMMAND",
			budget->path, baseline->line, baseline->name);
		return STATUS_USAGE;
	}
	if (time && !arguments->time) {
		message("gate: %s:%u: %s is a time; use --time, which takes several runs of a command",
			budget->path, time->line, time->name);
		return STATUS_USAGE;
	}
	if (arguments->time && !time) {
		message("gate: --time, and no bound is on a time");
		return STATUS_USAGE;
	}
	if (arguments->time && arguments->runs && arguments->runs < RUNS_LEAST_OF_TIME) {
		message("gate: --time: %u runs do not tell how a time varies; use --runs 3 or more",
			arguments->runs);
		return STATUS_USAGE;
	}
	/* Another day's times are another machine's. */
	for (i = 0; i < budget->list->len; i++) {
		const struct bound *bound = g_ptr_array_index(budget->list, i);

		if (bound->metric != GATE_TIME || !bound->factor || arguments->against)
			continue;
		message("gate: %s:%u: %s is a time against a baseline, which must be run in turns with "
			"the command; use --against COMMAND",
			budget->path, bound->line, bound->name);
		return STATUS_USAGE;
	}
	return STATUS_DONE;
}

/* NULL after one message. */
static struct bounds *find_budget(const struct arguments *arguments, int *status)
{
	struct bounds *budget = NULL;

	*status = STATUS_FAILED;
	if (arguments->init)
		return bounds_usual();
	if (arguments->budget)
		budget = bounds_read(arguments->budget);
	else if (!access(BUDGET_DEFAULT, F_OK))
		budget = bounds_read(BUDGET_DEFAULT);
	else if (arguments->baselines->len || arguments->against)
		return bounds_usual();
	else
		refuse("gate: no bounds; use --budget FILE, --baseline RECORDING or --against COMMAND");
	if (budget)
		*status = check_bounds(arguments, budget);
	if (*status)
		g_clear_pointer(&budget, bounds_free);
	return budget;
}

static int read_recordings(const GPtrArray *paths, const struct bounds *budget, GPtrArray *runs)
{
	guint i;

	for (i = 0; i < paths->len; i++) {
		struct counts *counts = counts_read(g_ptr_array_index(paths, i), budget);

		if (!counts)
			return STATUS_FAILED;
		g_ptr_array_add(runs, counts);
	}
	return STATUS_DONE;
}

static void set_tracing(struct session_config *config, const struct arguments *arguments,
			unsigned int probes)
{
	static const char *const names[] = { "alloc", "faults", "mappings", "reads", "samples" };
	g_autoptr(GString) words = g_string_new(NULL);
	size_t i;

	tracing_defaults(config);
	/* What is passed over is no longer counted. */
	config->overhead_limit = 0;
	config->overhead_limit_text = "none";
	config->may_leave_calls = false;
	config->uprobes = probes & GATE_ALLOC;
	config->faults = probes & GATE_FAULTS;
	config->mappings = probes & GATE_MAPPINGS;
	config->reads = probes & GATE_READS;
	config->samples = probes & GATE_SAMPLES;
	for (i = 0; i < G_N_ELEMENTS(names); i++)
		if (probes & 1U << i)
			g_string_append_printf(words, "%s%s", words->len ? "," : "", names[i]);
	config->probes = g_intern_string(words->str);
	/* Who keeps the recordings asks them of times, too. */
	config->counts_only = !arguments->time && !arguments->prefix;
	config->force = arguments->force;
	config->command_line = "memtoll gate";
}

static int check_outputs(const struct gate_plan *plan, bool force)
{
	unsigned int run;
	int side;

	for (run = 1; plan->prefix && !force && run <= plan->runs; run++)
		for (side = 0; side < SIDES; side++) {
			g_autofree char *path = gate_recording_path(plan->prefix, side, run);

			if (plan->side[side].command && !access(path, F_OK)) {
				message("%s exists; use --force to replace it", path);
				return STATUS_FAILED;
			}
		}
	return STATUS_DONE;
}

static int run_commands(const struct arguments *arguments, const struct bounds *budget,
			GPtrArray *before, GPtrArray *now, struct comparison *times, char **losses)
{
	unsigned int runs = arguments->runs		       ? arguments->runs :
			    arguments->init || arguments->time ? RUNS_OF_MORE :
								 RUNS_DEFAULT;
	struct gate_plan plan = {
		.budget = budget,
		.prefix = arguments->prefix,
		.runs = runs,
		.all_runs = arguments->init || arguments->time,
	};
	int side, status;

	for (side = 0; side < SIDES; side++) {
		struct compare_plan *one = &plan.side[side];

		one->who = "gate";
		one->command = side == WITH ? arguments->command : arguments->against;
		one->shows_output = true;
		one->runs = runs;
		set_tracing(&one->tracing, arguments, bounds_probes(budget));
	}
	status = check_outputs(&plan, arguments->force);
	if (!status)
		status = check_privileges();
	if (!status)
		status = gate_run(&plan, before, now, times, losses);
	return status;
}

static int write_budget(const struct arguments *arguments, const struct bounds *usual,
			const GPtrArray *runs, const char *command)
{
	struct output_file *file = NULL;

	if (arguments->budget) {
		file = output_file_open(arguments->budget, arguments->force, false);
		if (!file)
			return STATUS_FAILED;
	}
	if (bounds_write(file ? output_file_stream(file) : stdout, usual, runs, command)) {
		message("gate: cannot write the budget");
		output_file_remove(file);
		return STATUS_FAILED;
	}
	if (output_file_finish(file))
		return STATUS_FAILED;
	if (arguments->budget)
		message("wrote %s", arguments->budget);
	return STATUS_DONE;
}

/* A bound that somebody wrote is on what was traced. */
static int check_missing(const struct bounds *budget, const struct verdict *verdict)
{
	guint i;

	if (!verdict->missing || (!budget->path && verdict->missing < verdict->findings->len))
		return STATUS_DONE;
	for (i = 0; i < verdict->findings->len; i++) {
		const struct finding *finding = g_ptr_array_index(verdict->findings, i);

		if (finding->result != GATE_MISSING)
			continue;
		message("gate: %s cannot be judged: a recording says nothing of it (%s)",
			finding->bound->name, finding->reason);
		break;
	}
	return STATUS_FAILED;
}

static int judge(const struct arguments *arguments, const struct gate_subject *subject,
		 const struct comparison *times, const char *losses)
{
	struct verdict *verdict =
		verdict_new(subject->budget, subject->before, subject->now, times);
	int status = check_missing(subject->budget, verdict);

	if (losses)
		verdict_doubt_times(verdict, losses);
	if (!status && !arguments->json)
		gate_print_text(subject, verdict);
	else if (!status && gate_print_json(subject, verdict))
		status = STATUS_FAILED;
	if (!status && report_flush(stdout))
		status = STATUS_FAILED;
	if (!status && verdict->over)
		status = STATUS_OVER_BUDGET;
	else if (!status && verdict->unsure)
		status = STATUS_LOSSES;
	verdict_free(verdict);
	return status;
}

static void free_counts(void *counts)
{
	counts_free(counts);
}

static int gate(const struct arguments *arguments)
{
	g_autoptr(GPtrArray) before = g_ptr_array_new_with_free_func(free_counts);
	g_autoptr(GPtrArray) now = g_ptr_array_new_with_free_func(free_counts);
	g_autofree char *command = arguments->command ? shell_words(arguments->command) : NULL;
	g_autofree char *losses = NULL;
	struct comparison *times = NULL;
	struct bounds *budget;
	int status;

	if (!arguments->command)
		privileges_keep(PRIVILEGES_READ);
	budget = find_budget(arguments, &status);
	if (!budget)
		return status;
	if (arguments->init && arguments->budget &&
	    output_file_check(arguments->budget, arguments->force)) {
		status = STATUS_FAILED;
		goto out;
	}
	if (arguments->time)
		times = comparison_new();
	status = read_recordings(arguments->baselines, budget, before);
	if (!status && arguments->command)
		status = run_commands(arguments, budget, before, now, times, &losses);
	else if (!status)
		status = read_recordings(arguments->recordings, budget, now);
	if (!status && arguments->init)
		status = write_budget(arguments, budget, now, command);
	else if (!status)
		status = judge(arguments,
			       &(struct gate_subject){ budget, before, now, command,
						       arguments->against_text },
			       times, losses);
out:
	if (times)
		comparison_free(times);
	bounds_free(budget);
	return status;
}

int cli_gate(int argc, char **argv)
{
	struct arguments arguments = {
		.baselines = g_ptr_array_new(),
		.recordings = g_ptr_array_new(),
	};
	int status = parse_arguments(&argp, argc, argv, &arguments);

	if (!status) {
		check(&arguments);
		status = gate(&arguments);
	}
	g_ptr_array_unref(arguments.baselines);
	g_ptr_array_unref(arguments.recordings);
	g_strfreev(arguments.against);
	return status;
}
