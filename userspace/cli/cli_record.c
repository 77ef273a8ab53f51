// SPDX-License-Identifier: GPL-2.0
/* cli_record.c: `memtoll record` and `memtoll stat`, which differ in where the facts go. */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/message.h"
#include "base/options.h"
#include "base/shell.h"
#include "base/terminal.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/target_options.h"
#include "host/output_file.h"
#include "host/privileges.h"
#include "recording/recording.h"
#include "report/report.h"
#include "report/report_interval.h"
#include "session/session.h"
#include "targets/launch.h"

enum {
	OPTION_PROBES = 256,
	OPTION_MIN_SIZE,
	OPTION_OVERHEAD,
	OPTION_SAMPLE,
	OPTION_PLACE,
	OPTION_SLICE,
	OPTION_FORCE,
	OPTION_BUFFER,
	OPTION_FULL,
	OPTION_MAX_SIZE,
	OPTION_SCHEMA,
	OPTION_REDACT,
	OPTION_HOLD,
	OPTION_JVM_PERFMAP,
};

#define INTERVAL_LEAST_NS 1000000000ULL /* a slice */
#define HOLD_LEAST_NS 1000000000ULL	/* a look at large heaps takes as long */

struct record_options {
	bool is_stat;
	struct target_options target;
	const char *output;
	bool json;
	unsigned int sites;
	bool sites_given;
	bool full;
	bool schema;
	struct session_config session;
};

/* clang-format off */
#define TRACING_OPTIONS                                                                            \
	{ NULL, 0, NULL, 0, "What and how long:", 2 },                                             \
	{ "duration", 'd', "TIME", 0, "end so long after attaching: 10s, 500ms, 2m", 2 },          \
	{ "slice", OPTION_SLICE, "TIME", 0,                                                        \
	  "how fine the recording is in time: 100ms to 1m; default: 1s, half a second at first", 2 }, \
	{ "probes", OPTION_PROBES, "SET", 0,                                                       \
	  "of alloc,faults,mappings,samples,reads; default: all", 2 },                                   \
	{ "min-size", OPTION_MIN_SIZE, "SIZE", 0,                                                  \
	  "follow blocks of at least this size one by one; default: 64K", 2 },                     \
	{ "place", OPTION_PLACE, "PLACE", 0,                                                       \
	  "of glibc's malloc and free: entry (default), slow: only where the thread's cache does "  \
	  "not answer, auto: slow where that can be found", 2 },                                    \
	{ "sample", OPTION_SAMPLE, "SIZE", 0,                                                      \
	  "follow also smaller blocks, one in so many allocated bytes, as estimates", 2 },         \
	{ "overhead-limit", OPTION_OVERHEAD, "LIMIT", 0,                                           \
	  "CPU time of the target that probes may take: 5% (default), another part, none "         \
	  "(trace everything), 0 (tracepoints only)", 2 },                                        \
	{ "buffer", OPTION_BUFFER, "SIZE", 0, "of the ring buffer; default: 16M", 2 }
#define REDACT_OPTION                                                                              \
	{ "redact", OPTION_REDACT, NULL, 0,                                                        \
	  "for others: pseudonyms for arguments, names of files, programs, containers and the host", \
	  3 }
#define HOLD_OPTION                                                                                \
	{ "hold", OPTION_HOLD, "TIME", 0,                                                          \
	  "look at who holds the memory at the start, each TIME (1s or more) and at the end", 2 }
#define JVM_OPTION                                                                                 \
	{ "jvm-perfmap", OPTION_JVM_PERFMAP, NULL, 0,                                              \
	  "ask Java virtual machines (HotSpot, 17 or newer) for names of the code that they made", 2 }
/* clang-format on */

static const struct argp_option tracing_argp_options[] = {
	TRACING_OPTIONS,
	{ 0 },
};

static const struct argp_option record_argp_options[] = {
	TARGET_OPTIONS,
	HOLD_OPTION,
	JVM_OPTION,
	{ NULL, 0, NULL, 0, "Output:", 3 },
	{ "output", 'o', "FILE", 0, "the recording; default: memtoll-DATE-TIME.memtoll", 3 },
	{ "force", OPTION_FORCE, NULL, 0, "replace FILE if it exists", 3 },
	{ "max-size", OPTION_MAX_SIZE, "SIZE", 0,
	  "end before FILE and its journal become larger: 100M, 2G; default: no limit", 3 },
	REDACT_OPTION,
	{ 0 },
};

static const struct argp_option stat_argp_options[] = {
	TARGET_OPTIONS,
	HOLD_OPTION,
	JVM_OPTION,
	{ NULL, 0, NULL, 0, "Output:", 3 },
	{ "full", OPTION_FULL, NULL, 0,
	  "everything: evidence of the advice, all tolls, whole stacks, checks and notes", 3 },
	{ "json", 'j', "FILE", OPTION_ARG_OPTIONAL,
	  "one JSON object instead of text; in FILE (--json=FILE), where stdout is the command's",
	  3 },
	{ "interval", 'I', "TIME", 0,
	  "a line for each interval, 1s or more, as it ends; with --json an object a line", 3 },
	{ "schema", OPTION_SCHEMA, NULL, 0,
	  "print the JSON Schema of the lines of -I --json; needs no target", 3 },
	REDACT_OPTION,
	{ "output", 'o', "FILE", 0, "print into FILE instead of stdout", 3 },
	{ "force", OPTION_FORCE, NULL, 0, "replace FILE if it exists", 3 },
	{ "max-size", OPTION_MAX_SIZE, "SIZE", 0,
	  "end before what is recorded, in memory, becomes larger: 100M; default: no limit", 3 },
	{ "sites", 's', "N", 0,
	  "how many sites to print; 0: all (default: what the screen has room for, --full: 10)",
	  3 },
	{ 0 },
};

/* As recordings have it. */
#define PROBES_ALL "alloc,faults,mappings,samples,reads"

static bool parse_probes(const char *text, struct session_config *config)
{
	g_auto(GStrv) words = g_strsplit(text, ",", -1);
	bool all = false;
	size_t i;

	config->uprobes = false;
	config->faults = false;
	config->mappings = false;
	config->samples = false;
	config->reads = false;
	for (i = 0; words[i]; i++) {
		if (!strcmp(words[i], "alloc"))
			config->uprobes = true;
		else if (!strcmp(words[i], "faults"))
			config->faults = true;
		else if (!strcmp(words[i], "mappings"))
			config->mappings = true;
		else if (!strcmp(words[i], "samples"))
			config->samples = true;
		else if (!strcmp(words[i], "reads"))
			config->reads = true;
		else if (!strcmp(words[i], "all"))
			all = true;
		else
			return false;
	}
	config->probes = all ? PROBES_ALL : text;
	if (all)
		config->uprobes = config->faults = config->mappings = config->samples =
			config->reads = true;
	return config->uprobes || config->faults || config->mappings || config->samples ||
	       config->reads;
}

static bool parse_place(const char *text, enum probe_place *place)
{
	static const char *const names[] = {
		[PLACE_ENTRY] = "entry",
		[PLACE_SLOW] = "slow",
		[PLACE_AUTO] = "auto",
	};

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		if (strcmp(text, names[i]))
			continue;
		*place = i;
		return true;
	}
	return false;
}

static bool parse_buffer(const char *text, uint64_t *bytes)
{
	/* The kernel takes powers of two of whole pages (BPF_MAP_TYPE_RINGBUF). */
	return parse_size(text, bytes) && *bytes >= 65536 && *bytes <= 1ULL << 30 &&
	       !(*bytes & (*bytes - 1));
}

void tracing_limit(const char *option, const char *text, struct session_config *config)
{
	double percent;
	char *end;

	if (!strcmp(text, "none")) {
		config->overhead_limit = 0;
		config->overhead_limit_text = "none";
		config->may_leave_calls = false;
		return;
	}
	/* Not the locale's: 2.5 is 2.5 everywhere. */
	percent = g_ascii_strtod(text, &end);
	if (end == text || (*end && strcmp(end, "%")))
		refuse("%s '%s' is neither a percentage nor none; use 5%%, none or 0", option,
		       text);
	if (!(percent >= 0 && percent <= 50))
		refuse("%s %s is not from 0 to 50%%; use none to trace everything", option, text);
	config->overhead_limit = percent / 100;
	config->may_leave_calls = true;
	config->overhead_limit_text = g_intern_string(g_ascii_dtostr((char[64]){ 0 }, 64, percent));
}

static error_t parse_tracing(int key, char *value, struct argp_state *state)
{
	struct session_config *config = state->input;

	switch (key) {
	case 'd':
		if (!parse_duration(value, &config->duration_ns))
			refuse("-d '%s' is not a time; use 10s, 500ms or 2m", value);
		break;
	case OPTION_SLICE:
		if (!parse_duration(value, &config->slice_ns) ||
		    config->slice_ns < SLICE_SHORTEST_NS || config->slice_ns > SLICE_LONGEST_NS)
			refuse("--slice '%s' is not a time from 100ms to 1m", value);
		break;
	case OPTION_PROBES:
		if (!parse_probes(value, config))
			refuse("--probes '%s' is not of alloc,faults,mappings,samples,reads",
			       value);
		break;
	case OPTION_MIN_SIZE:
		if (!parse_size(value, &config->min_size))
			refuse("--min-size '%s' is not a size; use 65536, 64K or 1M", value);
		break;
	case OPTION_PLACE:
		if (!parse_place(value, &config->place))
			refuse("--place '%s' is not entry, slow or auto", value);
		break;
	case OPTION_BUFFER:
		if (!parse_buffer(value, &config->buffer_bytes))
			refuse("--buffer '%s' is not a power of two from 64K to 1G", value);
		break;
	case OPTION_SAMPLE:
		if (!parse_size(value, &config->sample) || config->sample < 16 ||
		    config->sample > SAMPLE_MAX)
			refuse("--sample '%s' is not a size from 16 to 4G", value);
		break;
	case OPTION_OVERHEAD:
		tracing_limit("--overhead-limit", value, config);
		break;
	case ARGP_KEY_SUCCESS:
		/* Whatever the order of the options. */
		if (!strcmp(config->overhead_limit_text, "0"))
			config->uprobes = false;
		if (config->place == PLACE_SLOW && config->sample)
			refuse("--place slow: smaller blocks are not all seen there, as --sample "
			       "needs them; use --place entry");
		if (config->sample)
			config->place = PLACE_ENTRY;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

const struct argp tracing_argp = { .options = tracing_argp_options, .parser = parse_tracing };

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct record_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &options->session;
		break;
	case 'o':
		if (options->is_stat && options->output)
			refuse("-o %s: another file is named, too", value);
		options->output = value;
		break;
	case OPTION_FORCE:
		options->session.force = true;
		break;
	case OPTION_MAX_SIZE:
		options->session.max_bytes = take_max_size(value);
		break;
	case OPTION_FULL:
		options->full = true;
		break;
	case OPTION_SCHEMA:
		options->schema = true;
		break;
	case OPTION_REDACT:
		options->session.redact = true;
		break;
	case OPTION_HOLD:
		if (!parse_duration(value, &options->session.hold_ns) ||
		    options->session.hold_ns < HOLD_LEAST_NS)
			refuse("--hold '%s' is not a time of 1s or more; use 10s or 5m", value);
		break;
	case OPTION_JVM_PERFMAP:
		options->session.jvm_perfmap = true;
		break;
	case 'I':
		if (!parse_duration(value, &options->session.interval_ns) ||
		    options->session.interval_ns < INTERVAL_LEAST_NS)
			refuse("-I '%s' is not a time of at least 1s; use 1s, 10s or 1m", value);
		break;
	case 'j':
		options->json = true;
		if (value && options->output)
			refuse("--json=%s: -o names another file", value);
		if (value)
			options->output = value;
		break;
	case 's':
		if (!parse_count(value, &options->sites))
			refuse("--sites '%s' is not a number of sites", value);
		options->sites_given = true;
		break;
	default:
		return take_target(&options->target, key, value, state);
	}
	return 0;
}

static const char record_doc[] =
	"Trace a process or a command and write what its memory costs into a recording."
	"\vExamples:\n"
	"  memtoll record -p 1234 -d 10s -o server.memtoll\n"
	"  memtoll record -o run.memtoll -- ./program --its-option\n";

static const char stat_doc[] =
	"Trace a process or a command and print the verdict and the toll. The exit status of a "
	"command is passed on."
	"\vExamples:\n"
	"  memtoll stat -p 1234 -d 10s\n"
	"  memtoll stat -p 1234 -I 1s\n"
	"  memtoll stat -- ./program --its-option\n";

static int parse(int argc, char **argv, struct record_options *options)
{
	const struct argp_child children[] = { { &tracing_argp, 0, NULL, 0 }, { 0 } };
	const struct argp argp = {
		.children = children,
		.options = options->is_stat ? stat_argp_options : record_argp_options,
		.parser = parse_option,
		.args_doc = "[-- COMMAND ARGS...]",
		.doc = options->is_stat ? stat_doc : record_doc,
	};

	if (parse_arguments(&argp, argc, argv, options))
		return STATUS_USAGE;
	if (options->schema)
		return STATUS_DONE;
	if (options->is_stat && options->session.force && !options->output) {
		message("--force replaces a file, and none is named; use -o FILE or --json=FILE");
		return STATUS_USAGE;
	}
	return want_target(&options->target);
}

static char *default_output(void)
{
	char text[64];
	time_t now = time(NULL);
	struct tm local;

	localtime_r(&now, &local);
	strftime(text, sizeof(text), "memtoll-%Y%m%d-%H%M%S.memtoll", &local);
	return g_strdup(text);
}

/* Whose status is not passed on is told. */
static void say_written(const struct record_options *options, struct session *session)
{
	int status = 0;

	if (!session_command_status(session, &status) || !status)
		message("wrote %s", options->session.output);
	else if (status & 0x7f) /* wait(2) */
		message("wrote %s; the command was ended by signal %d", options->session.output,
			status & 0x7f);
	else
		message("wrote %s; the command exited %d", options->session.output,
			status >> 8 & 0xff);
}

/* Of stat. 0 or -errno. */
static int print_report(const struct record_options *options, sqlite3 *database,
			const struct report_options *report, FILE *out)
{
	if (options->json)
		return report_json(database, report, out);
	if (options->session.interval_ns && fputc('\n', out) == EOF)
		return -EIO;
	if (options->full)
		return report_text(database, report, out);
	return report_short(database, report, out);
}

/* The last lines when the recording is done, and the exit status. */
static int conclude(const struct record_options *options, struct session *session,
		    struct output_file *file)
{
	FILE *out = file ? output_file_stream(file) : stdout;
	struct report_options report = { .sites = options->sites,
					 .sites_given = options->sites_given,
					 .color = wants_color(),
					 .full_command = "memtoll stat --full" };
	sqlite3 *database = session_database(session);
	g_autofree char *losses = NULL;
	int wait_status = 0, err = 0;

	privileges_keep(file ? PRIVILEGES_WRITE : PRIVILEGES_NONE);
	if (file)
		report.color = false;
	else
		terminal_size(&report.columns, &report.lines);
	if (!options->is_stat)
		say_written(options, session);
	else
		err = print_report(options, database, &report, out);
	if (err || fflush(out)) {
		message("cannot print the report: %s", strerror(err ? -err : errno));
		output_file_remove(file);
		return STATUS_FAILED;
	}
	if (output_file_finish(file))
		return STATUS_FAILED;
	privileges_keep(PRIVILEGES_NONE);
	if (options->is_stat && session_command_status(session, &wait_status) && wait_status)
		return shell_exit_status(wait_status);
	if (!report_losses_exceed(database, &losses))
		return STATUS_DONE;
	message("losses exceed 1 %% of what was counted: %s", losses ? losses : "unreadable");
	return STATUS_LOSSES;
}

/* Lines of intervals, and the file that they go to; NULL: none. */
struct shown_lines {
	struct interval_lines lines;
	struct output_file *file;
};

static void show_line(void *context, const struct interval *interval)
{
	struct shown_lines *shown = context;

	if (shown->file)
		output_file_show(shown->file);
	interval_line(&shown->lines, interval);
}

static int record(struct record_options *options)
{
	g_autofree char *output = NULL;
	struct shown_lines shown = { .lines.json = options->json };
	struct output_file *file = NULL;
	struct session *session;
	int status;

	status = check_privileges();
	if (!status)
		status = find_target(&options->target, &options->session);
	if (status)
		return status;
	if (!options->is_stat) {
		output = options->output ? g_strdup(options->output) : default_output();
		options->session.output = output;
	} else if (options->output) {
		/* Lines of intervals are read while they come. */
		file = output_file_open(options->output, options->session.force,
					options->session.interval_ns);
		if (!file)
			return STATUS_FAILED;
	}
	shown.file = file;
	shown.lines.out = file ? output_file_stream(file) : stdout;
	if (options->session.interval_ns)
		options->session.on_interval = show_line;
	options->session.interval_context = &shown;
	session = session_new(&options->session);
	status = session_record(session);
	session_close(session);
	if (status)
		output_file_remove(file);
	else
		status = conclude(options, session, file);
	session_free(session);
	return status;
}

void tracing_defaults(struct session_config *config)
{
	config->min_size = MIN_SIZE_DEFAULT;
	config->uprobes = true;
	config->faults = true;
	config->mappings = true;
	config->samples = true;
	config->reads = true;
	config->overhead_limit = 0.05;
	config->overhead_limit_text = "5";
	config->may_leave_calls = true;
	config->probes = PROBES_ALL;
}

static int run(int argc, char **argv, bool is_stat)
{
	g_autofree char *line = g_strjoinv(" ", argv);
	g_autofree char *command_line = g_strdup_printf("memtoll %s", line);
	struct record_options options = { .is_stat = is_stat, .sites = 10 };
	int status;

	tracing_defaults(&options.session);
	options.session.command_line = command_line;
	status = parse(argc, argv, &options);
	if (status)
		return status;
	if (options.schema)
		return interval_print_schema(stdout) ? STATUS_FAILED : STATUS_DONE;
	status = record(&options);
	clear_target(&options.target);
	return status;
}

int cli_record(int argc, char **argv)
{
	return run(argc, argv, false);
}

int cli_stat(int argc, char **argv)
{
	return run(argc, argv, true);
}
