// SPDX-License-Identifier: GPL-2.0
/*
 * cli_compare.c: memtoll compare [--set VAR=VALUE]... [--preload LIB]... -- COMMAND: run a command
 * alternately without and with a change of its environment, and say what that did to its toll.
 */
#include <argp.h>
#include <ctype.h>
#include <elf.h>
#include <fcntl.h>
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "compare/compare_print.h"
#include "compare/compare_run.h"
#include "compare/setting.h"
#include "host/privileges.h"
#include "report/report_views.h"

#define RUNS_DEFAULT 3
#define RUNS_MOST 1000

enum {
	OPTION_SET = 512,
	OPTION_PRELOAD,
	OPTION_RUNS,
	OPTION_FORCE,
};

struct arguments {
	struct compare_plan plan;
	GPtrArray *preload;
	bool json;
	bool force;
};

/* Plain runs and traced ones. */
struct progress {
	unsigned int done[2]; /* the one under way, too */
	uint64_t spent_ns[2];
	uint64_t begun_ns; /* the one under way; 0: none was */
	bool traced;	   /* so is that one */
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "The change (at least one):", 1 },
	{ "set", OPTION_SET, "VAR=VALUE", 0,
	  "a variable of the command's environment; other settings of a list stay", 1 },
	{ "preload", OPTION_PRELOAD, "LIB", 0, "a library to load first: another allocator", 1 },
	{ NULL, 0, NULL, 0, "Output and runs:", 3 },
	{ "runs", OPTION_RUNS, "N", 0, "traced runs of each side; default: 3", 3 },
	{ "output", 'o', "PREFIX", 0, "keep the recordings: PREFIX-without-1.memtoll ...", 3 },
	{ "force", OPTION_FORCE, NULL, 0, "replace recordings that exist", 3 },
	{ "json", 'j', NULL, 0, "one JSON object instead of text", 3 },
	{ 0 },
};

/* Names that glibc's malloc reads (its manual, Memory Allocation Tunables): others it ignores. */
static const char *const malloc_tunables[] = {
	"check",
	"top_pad",
	"perturb",
	"mmap_max",
	"mmap_threshold",
	"trim_threshold",
	"arena_max",
	"arena_test",
	"tcache_max",
	"tcache_count",
	"tcache_unsorted_limit",
	"mxfast",
	"hugetlb",
	NULL,
};

static void warn_of_tunables(const char *value)
{
	g_auto(GStrv) words = g_strsplit(value, ":", -1);
	size_t i;

	for (i = 0; words[i]; i++) {
		g_autofree char *name = g_strndup(words[i], strcspn(words[i], "="));

		if (g_str_has_prefix(name, "glibc.malloc.") &&
		    !g_strv_contains(malloc_tunables, name + strlen("glibc.malloc.")))
			message("compare: no tunable of glibc's malloc is called '%s': it is ignored",
				name);
	}
}

static void parse_set(const char *text, struct arguments *arguments)
{
	size_t name = strcspn(text, "=");
	bool valid = name > 0 && text[name] == '=' && !isdigit((unsigned char)*text);
	size_t i;

	for (i = 0; i < name; i++)
		valid &= text[i] == '_' || isalnum((unsigned char)text[i]);
	if (!valid)
		refuse("compare: --set '%s' is not VAR=VALUE", text);
	if (g_str_has_prefix(text, "GLIBC_TUNABLES="))
		warn_of_tunables(text + name + 1);
	g_ptr_array_add(arguments->plan.changes, g_strdup(text));
}

static bool is_library(const char *path)
{
	unsigned char ident[EI_NIDENT + 2]; /* and the type */
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool is = fd >= 0 && read(fd, ident, sizeof(ident)) == sizeof(ident) &&
		  !memcmp(ident, ELFMAG, SELFMAG) && ident[EI_NIDENT] == ET_DYN;

	if (fd >= 0)
		close(fd);
	return is;
}

/* The loader only warns of a library that it does not find, and the run would compare nothing. */
static void parse_preload(const char *text, struct arguments *arguments)
{
	static const char *const directories[] = {
		"/usr/local/lib",
		"/usr/lib/x86_64-linux-gnu",
		"/lib/x86_64-linux-gnu",
		"/usr/lib64",
		"/usr/lib",
		"/lib",
	};
	g_autofree char *path = strchr(text, '/') ? g_canonicalize_filename(text, NULL) : NULL;
	size_t i;

	for (i = 0; !path && i < G_N_ELEMENTS(directories); i++) {
		path = g_build_filename(directories[i], text, NULL);
		if (!g_file_test(path, G_FILE_TEST_EXISTS))
			g_clear_pointer(&path, g_free);
	}
	if (!path || strpbrk(path, ": ") || !is_library(path))
		refuse("compare: --preload %s: %s", text,
		       !path || access(path, F_OK) ? "no such library" :
		       strpbrk(path, ": ") ? "the loader takes no path with a blank or a colon" :
					     "not a shared library");
	g_ptr_array_add(arguments->preload, g_steal_pointer(&path));
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;
	guint64 number;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &arguments->plan.tracing;
		break;
	case OPTION_SET:
		parse_set(value, arguments);
		break;
	case OPTION_PRELOAD:
		parse_preload(value, arguments);
		break;
	case OPTION_RUNS:
		if (!g_ascii_string_to_unsigned(value, 10, 1, RUNS_MOST, &number, NULL))
			refuse("compare: --runs '%s' is not a number from 1 to %d", value,
			       RUNS_MOST);
		arguments->plan.runs = number;
		break;
	case 'o':
		if (!*value)
			refuse("compare: -o '' is not the beginning of a name");
		arguments->plan.prefix = value;
		break;
	case OPTION_FORCE:
		arguments->force = true;
		break;
	case 'j':
		arguments->json = true;
		break;
	case ARGP_KEY_ARGS:
		arguments->plan.command = state->argv + state->next;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp_child children[] = { { &tracing_argp, 0, NULL, 0 }, { 0 } };

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.children = children,
	.args_doc = "-- COMMAND ARGS...",
	.doc = "Run a command without and with a change of its environment, alternating, and print "
	       "both tolls with the difference and its error. Each side is run once to warm up, then N "
	       "times as it is (wall and CPU time, memory, faults) and N times traced. The command "
	       "reads nothing, and what it writes to stdout is thrown away. With -d each run is ended "
	       "after that time, and figures are per second.\v"
	       "Examples:\n"
	       "  memtoll compare --set GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072 -- ./program\n"
	       "  memtoll compare --preload libjemalloc.so.2 --runs 5 -- ./program --its-option\n\n"
	       "Exit status: 0 done, whatever the difference is; 1 the command or a recording failed;\n"
	       "2 usage; 3 this kernel or these privileges cannot do it; 4 done, but losses exceed 1 %.\n",
};

static int parse(int argc, char **argv, struct arguments *arguments)
{
	int status = parse_arguments(&argp, argc, argv, arguments);
	const char *outside;

	if (status)
		return status;
	if (!arguments->plan.command) {
		message("compare: no command; end with -- COMMAND ARGS...");
		return STATUS_USAGE;
	}
	if (arguments->preload->len) {
		g_autofree char *libraries = NULL;

		g_ptr_array_add(arguments->preload, NULL);
		libraries = g_strjoinv(":", (char **)arguments->preload->pdata);
		g_ptr_array_add(arguments->plan.changes,
				g_strdup_printf("LD_PRELOAD=%s", libraries));
	}
	if (!arguments->plan.changes->len) {
		message("compare: no change to try; use --set VAR=VALUE or --preload LIB");
		return STATUS_USAGE;
	}
	outside = setting_out_of_reach(arguments->plan.command, arguments->plan.changes);
	if (outside) {
		g_autofree char *word = text_printable(outside);

		message("compare: the command sets the variable itself, in '%s': the change may not "
			"reach what is run there",
			word);
	}
	return STATUS_DONE;
}

/* Of a side and a run, from 1. Freed by g_free(). */
static char *recording_path(const char *prefix, enum compare_side side, unsigned int run)
{
	return g_strdup_printf("%s-%s-%u.memtoll", prefix, compare_side_name(side), run);
}

static int check_outputs(const struct arguments *arguments)
{
	unsigned int run;
	int side;

	if (!arguments->plan.prefix || arguments->force)
		return STATUS_DONE;
	for (run = 1; run <= arguments->plan.runs; run++)
		for (side = 0; side < SIDES; side++) {
			g_autofree char *path = recording_path(arguments->plan.prefix, side, run);

			if (!access(path, F_OK)) {
				message("%s exists; use --force to replace it", path);
				return STATUS_FAILED;
			}
		}
	return STATUS_DONE;
}

static void add_plain(struct comparison *comparison, enum compare_side side,
		      const struct plain_run *run)
{
	const struct {
		const char *name;
		enum compare_unit unit;
		double value;
	} figures[] = {
		{ "wall time", COMPARE_SECONDS, run->wall_s },
		{ "CPU time", COMPARE_SECONDS, run->cpu_s },
		{ "most resident", COMPARE_BYTES, run->max_rss_bytes },
		{ "minor faults", COMPARE_COUNT, run->minor_faults },
		{ "major faults", COMPARE_COUNT, run->major_faults },
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(figures); i++) {
		struct figure *figure = comparison_figure(comparison, COMPARE_RUN, figures[i].name,
							  NULL, figures[i].unit);

		g_array_append_val(figure->values[side], figures[i].value);
	}
}

/* "compare: run 3 of 14, 40 s left": by how long the runs before took, each kind for itself. */
static void say_next(struct progress *progress, const struct compare_plan *plan, bool traced)
{
	/* Of each side: one plain run to warm up, and then as many of each kind. */
	const unsigned int runs[] = { SIDES * (plan->runs + 1), SIDES * plan->runs };
	uint64_t now = now_ns();
	g_autofree char *left = NULL;
	double left_ns = 0;
	int i;

	if (progress->begun_ns)
		progress->spent_ns[progress->traced] += now - progress->begun_ns;
	for (i = 0; i < 2; i++) {
		/* Until there was one, a traced run is taken to be as long as the others. */
		int like = progress->done[i] ? i : 0;

		if (progress->done[like])
			left_ns += (double)(runs[i] - progress->done[i]) *
				   (double)progress->spent_ns[like] / progress->done[like];
	}
	if (left_ns > 0)
		left = g_strdup_printf(", %.0f s left", ceil(left_ns / 1e9));
	status_line("compare: run %u of %u%s", progress->done[0] + progress->done[1] + 1,
		    runs[0] + runs[1], left ? left : "");
	progress->begun_ns = now;
	progress->traced = traced;
	progress->done[traced]++;
}

/* One plain and one traced run of each side; which side begins changes from run to run. */
static int run_pair(const struct compare_plan *plan, const char *prefix, unsigned int run,
		    struct progress *progress, struct comparison *comparison)
{
	int status = STATUS_DONE, i;

	for (i = 0; !status && i < 2 * SIDES; i++) {
		enum compare_side side = (i + run + 1) % SIDES;
		g_autofree char *path = recording_path(prefix, side, run);
		struct plain_run plain = { 0 };

		say_next(progress, plan, i >= SIDES);
		if (i < SIDES) {
			status = compare_run_plain(plan, side, &plain);
			if (!status)
				add_plain(comparison, side, &plain);
		} else {
			status = compare_run_traced(plan, side, path);
		}
		if (!status && compare_interrupted())
			status = STATUS_FAILED;
	}
	return status;
}

static int read_all(const struct compare_plan *plan, const char *prefix,
		    struct comparison *comparison, char **losses)
{
	double divisor[SIDES] = { 1, 1 };
	unsigned int run;
	size_t i;
	int side;

	for (run = 1; run <= plan->runs; run++)
		for (side = 0; side < SIDES; side++) {
			g_autofree char *path = recording_path(prefix, side, run);

			if (compare_read(path, plan, side, comparison, &divisor[side], losses))
				return STATUS_FAILED;
		}
	for (i = 0; i < comparison->figures->len; i++) {
		struct figure *figure = g_ptr_array_index(comparison->figures, i);

		for (side = 0; side < SIDES; side++) {
			figure->count[side] /= plan->runs;
			figure->bytes[side] /= plan->runs;
		}
	}
	comparison_finish(comparison, divisor);
	return STATUS_DONE;
}

static int run_all(const struct compare_plan *plan, const char *prefix,
		   struct comparison *comparison)
{
	struct progress progress = { 0 };
	struct plain_run warm;
	unsigned int run;
	int status;

	say_next(&progress, plan, false);
	status = compare_run_plain(plan, WITHOUT, &warm);
	if (!status && !compare_interrupted()) {
		say_next(&progress, plan, false);
		status = compare_run_plain(plan, WITH, &warm);
	}
	for (run = 1; !status && run <= plan->runs && !compare_interrupted(); run++)
		status = run_pair(plan, prefix, run, &progress, comparison);
	status_line(NULL);
	if (compare_interrupted()) {
		message("compare: interrupted");
		status = STATUS_FAILED;
	}
	return status;
}

static int compare(struct arguments *arguments)
{
	struct compare_plan *plan = &arguments->plan;
	struct comparison *comparison = comparison_new();
	g_autofree char *directory = NULL, *prefix = NULL, *losses = NULL;
	g_autoptr(GError) error = NULL;
	int status = STATUS_FAILED;

	if (plan->prefix) {
		prefix = g_strdup(plan->prefix);
	} else {
		directory = g_dir_make_tmp("memtoll-compare-XXXXXX", &error);
		if (!directory) {
			message("compare: no temporary directory: %s", error->message);
			goto out;
		}
		prefix = g_build_filename(directory, "run", NULL);
	}
	compare_catch_signals();
	status = run_all(plan, prefix, comparison);
	if (!status)
		status = read_all(plan, prefix, comparison, &losses);
	if (status)
		goto out;
	status = STATUS_FAILED;
	if (!arguments->json)
		compare_print_text(plan, comparison, losses);
	else if (compare_print_json(plan, comparison, losses))
		goto out;
	if (report_flush(stdout))
		goto out;
	status = losses ? STATUS_LOSSES : STATUS_DONE;
	if (losses)
		message("losses exceed 1 %% of what was counted: %s", losses);
out:
	if (directory)
		compare_remove_temporary(directory);
	comparison_free(comparison);
	return status;
}

int cli_compare(int argc, char **argv)
{
	g_autofree char *line = g_strjoinv(" ", argv);
	g_autofree char *command_line = g_strdup_printf("memtoll %s", line);
	struct arguments arguments = {
		.plan = {
			.who = "compare",
			.changes = g_ptr_array_new_with_free_func(g_free),
			.runs = RUNS_DEFAULT,
		},
		.preload = g_ptr_array_new_with_free_func(g_free),
	};
	int status;

	tracing_defaults(&arguments.plan.tracing);
	arguments.plan.tracing.command_line = command_line;
	status = parse(argc, argv, &arguments);
	arguments.plan.tracing.force = arguments.force;
	if (!status)
		status = check_outputs(&arguments);
	if (!status)
		status = check_privileges();
	if (!status)
		status = compare(&arguments);
	g_ptr_array_unref(arguments.plan.changes);
	g_ptr_array_unref(arguments.preload);
	return status;
}
