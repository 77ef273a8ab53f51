// SPDX-License-Identifier: GPL-2.0
/* cli_watch.c: `memtoll watch`: what is recorded for weeks, and who is told. */
#include <argp.h>
#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/message.h"
#include "base/options.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/option_file.h"
#include "host/privileges.h"
#include "watch/log.h"
#include "watch/metrics.h"
#include "watch/psi.h"
#include "watch/trigger.h"
#include "watch/watch.h"

#define S 1000000000ULL
#define MINUTE (60 * S)
#define PLACES_MOST 1000
/* A tool that nobody looks at takes less than one that somebody waits for. */
#define LIMIT "2%"
#define DETAIL_LIMIT "5%"

enum option_key {
	OPTION_ROTATE = 256,
	OPTION_KEEP,
	OPTION_PLACES,
	OPTION_METRICS,
	OPTION_LISTEN,
	OPTION_REDACT,
	OPTION_CONFIG,
	OPTION_WHEN,
	OPTION_DETAIL_FOR,
	OPTION_DETAIL_PAUSE,
	OPTION_DETAIL_LIMIT,
};

/* clang-format off */
static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "Targets (one or more, each option again and again):", 1 },
	{ "name", 'n', "NAME", 0, "all processes of this name, as they come and go", 1 },
	{ "cgroup", 'c', "PATH", 0,
	  "all processes of a cgroup, container or pod, which may come and go as well", 1 },
	{ "config", OPTION_CONFIG, "FILE", 0,
	  "more options, a line each as they are here; SIGHUP reads them again", 1 },
	{ NULL, 0, NULL, 0, "Recordings:", 3 },
	{ "output", 'o', "DIR", 0, "the directory they are kept in; is made", 3 },
	{ "rotate", OPTION_ROTATE, "TIME", 0, "a new one so often; default: 10m", 3 },
	{ "keep", OPTION_KEEP, "SIZE", 0,
	  "all together take no more: the oldest of its own are removed; default: 2G", 3 },
	{ "redact", OPTION_REDACT, NULL, 0,
	  "for others: pseudonyms for arguments, names of files, programs, containers and the host",
	  3 },
	{ NULL, 0, NULL, 0, "What is told meanwhile:", 4 },
	{ "interval", 'I', "TIME", 0, "how often; default: 10s", 4 },
	{ "metrics", OPTION_METRICS, "FILE", 0,
	  "OpenMetrics, for node_exporter's textfile collector: DIR/memtoll.prom", 4 },
	{ "listen", OPTION_LISTEN, "ADDRESS", 0,
	  "OpenMetrics over HTTP, for this machine only: 127.0.0.1:9712, [::1]:9712 or unix:/PATH", 4 },
	{ "json", 'j', "FILE", OPTION_ARG_OPTIONAL,
	  "an object a line to stdout, or appended to FILE (--json=FILE)", 4 },
	{ "places", OPTION_PLACES, "N", 0,
	  "so many places of code have metrics of their own, the rest is summed; default: 20, 0: none", 4 },
	{ NULL, 0, NULL, 0, "To look closer for a while:", 5 },
	{ "when", OPTION_WHEN, "CONDITION", 0,
	  "a detailed recording while it holds: 'swap.share > 0.3 for 30s', "
	  "'psi.memory.some > 10 for 10s'", 5 },
	{ "detail-for", OPTION_DETAIL_FOR, "TIME", 0, "it takes no longer; default: 5m", 5 },
	{ "detail-pause", OPTION_DETAIL_PAUSE, "TIME", 0,
	  "between one and the next; default: 30m", 5 },
	{ "detail-limit", OPTION_DETAIL_LIMIT, "LIMIT", 0,
	  "the --overhead-limit meanwhile; default: " DETAIL_LIMIT, 5 },
	{ 0 },
};
/* clang-format on */

static const char doc[] =
	"Record for weeks, in the background: one recording after the other without a gap, the disk "
	"and the memory bounded; metrics, and closer looks when it matters. SIGHUP begins a new "
	"recording, with the options that --config has by then; SIGTERM ends it, whole. Its --overhead-limit is " LIMIT
	" by default; -d ends all."
	"\vExamples:\n"
	"  memtoll watch -n redis-server -o /var/lib/memtoll --metrics "
	"/var/lib/prometheus/node-exporter/memtoll.prom\n"
	"  memtoll watch -c system.slice/mariadb.service -o /var/lib/memtoll --keep 2G "
	"--listen 127.0.0.1:9712 --when 'swap.share > 0.3 for 30s'\n";

static bool is_known(const char *name)
{
	static const char psi[] = "psi.";

	return g_str_has_prefix(name, psi) ? psi_has(name + strlen(psi)) : metrics_has_name(name);
}

static void add_trigger(struct watch_config *config, const char *text)
{
	char *error;
	struct trigger *trigger = trigger_parse(text, is_known, &error);

	if (!trigger)
		refuse("--when '%s': %s", text, error);
	g_ptr_array_add(config->triggers, trigger);
}

static void add_target(struct watch_config *config, int key, const char *value)
{
	const char *what = key == 'n' ? "name" : "cgroup";

	if (!*value)
		refuse("-%c '' is not a %s", key, what);
	if (key == 'n' ? target_set_add_name(config->targets, value) :
			 target_set_add_cgroup(config->targets, value))
		return;
	if (target_set_count(config->targets) == TARGETS_MAX)
		refuse("-%c %s: more than %d targets; watch them with another memtoll", key, value,
		       TARGETS_MAX);
	refuse("-%c %s: named twice", key, value);
}

static void take_time(const char *option, const char *value, uint64_t least_ns, uint64_t *ns)
{
	if (!parse_duration(value, ns) || *ns < least_ns)
		refuse("%s '%s' is not a time of at least %llus; use 30s, 10m or 1h", option, value,
		       (unsigned long long)(least_ns / S));
}

static error_t parse_trigger_option(struct watch_config *config, int key, char *value)
{
	switch (key) {
	case OPTION_WHEN:
		add_trigger(config, value);
		break;
	case OPTION_DETAIL_FOR:
		take_time("--detail-for", value, S, &config->detail_most_ns);
		break;
	case OPTION_DETAIL_PAUSE:
		take_time("--detail-pause", value, S, &config->detail_pause_ns);
		break;
	case OPTION_DETAIL_LIMIT:
		tracing_limit("--detail-limit", value, &config->detailed);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct watch_config *config = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &config->session;
		break;
	case 'n':
	case 'c':
		add_target(config, key, value);
		break;
	case 'o':
		config->directory = value;
		break;
	case OPTION_ROTATE:
		take_time("--rotate", value, WATCH_ROTATE_LEAST_NS, &config->rotate_ns);
		break;
	case OPTION_KEEP:
		if (!parse_size(value, &config->keep_bytes) ||
		    config->keep_bytes < WATCH_KEEP_LEAST)
			refuse("--keep '%s' is not a size of at least 16M; use 500M or 2G", value);
		break;
	case OPTION_CONFIG:
		if (config->options_path)
			refuse("--config %s: one file, named on the command line", value);
		config->options_path = value;
		break;
	case OPTION_REDACT:
		config->session.redact = true;
		break;
	case 'I':
		take_time("-I", value, WATCH_INTERVAL_LEAST_NS, &config->interval_ns);
		break;
	case OPTION_METRICS:
		config->metrics_path = value;
		break;
	case OPTION_LISTEN:
		config->listens = true;
		if (!listen_address_parse(value, &config->listen))
			refuse("--listen '%s' is not of this machine alone; use 127.0.0.1:9712, "
			       "[::1]:9712 or unix:/PATH",
			       value);
		break;
	case 'j':
		config->json_path = value ? value : "-";
		break;
	case OPTION_PLACES:
		if (!parse_count(value, &config->places) || config->places > PLACES_MOST)
			refuse("--places '%s' is not a number up to %d", value, PLACES_MOST);
		break;
	case ARGP_KEY_ARG:
		refuse("watch follows processes by -n NAME or -c CGROUP; '%s' is neither", value);
	default:
		return parse_trigger_option(config, key, value);
	}
	return 0;
}

static void check(const struct watch_config *config)
{
	if (!target_set_count(config->targets))
		refuse("no target; use -n NAME or -c CGROUP");
	if (!config->directory)
		refuse("name the directory for the recordings: -o DIR");
	if (config->interval_ns > config->rotate_ns)
		refuse("-I is longer than --rotate: an interval is of one recording");
}

/* As fine as it gets, and with more of the target's time. */
static void make_detailed(struct watch_config *config)
{
	const struct session_config limit = config->detailed;

	config->detailed = config->session;
	config->detailed.slice_ns = SLICE_SHORTEST_NS;
	config->detailed.overhead_limit = limit.overhead_limit;
	config->detailed.overhead_limit_text = limit.overhead_limit_text;
	config->detailed.may_leave_calls = limit.may_leave_calls;
}

/* What was asked for on the command line, which the file's options come after. */
struct asked {
	int argc;
	char **argv;
	const char *path; /* --config; NULL: none */
};

static void set_defaults(struct watch_config *config)
{
	*config = (struct watch_config){
		.targets = target_set_new(),
		.triggers = g_ptr_array_new_with_free_func((GDestroyNotify)trigger_free),
		.rotate_ns = 10 * MINUTE,
		.keep_bytes = 2ULL << 30,
		.interval_ns = 10 * S,
		.places = 20,
		.detail_most_ns = 5 * MINUTE,
		.detail_pause_ns = 30 * MINUTE,
	};
	tracing_defaults(&config->session);
	tracing_limit("--overhead-limit", LIMIT, &config->session);
	tracing_limit("--detail-limit", DETAIL_LIMIT, &config->detailed);
}

static int parse(int argc, char **argv, struct watch_config *config)
{
	const struct argp_child children[] = { { &tracing_argp, 0, NULL, 0 }, { 0 } };
	const struct argp argp = {
		.options = options,
		.parser = parse_option,
		.children = children,
		.args_doc = "",
		.doc = doc,
	};

	return parse_arguments(&argp, argc, argv, config);
}

/* Added line by line, so that a message has the line; config is of no further use. */
static int parse_lines(const struct asked *asked, const GPtrArray *lines, const char *consequence,
		       struct watch_config *config)
{
	int status = STATUS_DONE;
	guint i;

	for (i = 0; i < lines->len && !status; i++) {
		const struct option_line *line = lines->pdata[i];
		g_autofree char *place = g_strdup_printf("%s:%u: ", asked->path, line->number);
		g_autoptr(GPtrArray) words = g_ptr_array_new();
		char **word;

		g_ptr_array_add(words, asked->argv[0]);
		for (word = line->words; *word; word++)
			g_ptr_array_add(words, *word);
		g_ptr_array_add(words, NULL);
		arguments_are_of(place, consequence);
		status = parse((int)words->len - 1, (char **)words->pdata, config);
		arguments_are_of("", "");
	}
	return status;
}

/* All of it, which may end the process. The words live as long as memtoll: each only once. */
static int parse_all(const struct asked *asked, const GPtrArray *lines, const char *consequence,
		     struct watch_config *config)
{
	g_autofree char *place = g_strdup_printf("%s: ", asked->path ? asked->path : "");
	g_autoptr(GPtrArray) words = g_ptr_array_new();
	g_autofree char *line = NULL, *command_line = NULL;
	char **word;
	int i, status;
	guint k;

	for (i = 0; i < asked->argc; i++)
		g_ptr_array_add(words, asked->argv[i]);
	for (k = 0; lines && k < lines->len; k++)
		for (word = ((struct option_line *)lines->pdata[k])->words; *word; word++)
			g_ptr_array_add(words, (char *)g_intern_string(*word));
	g_ptr_array_add(words, NULL);
	set_defaults(config);
	if (asked->path)
		arguments_are_of(place, consequence);
	status = parse((int)words->len - 1, (char **)words->pdata, config);
	if (!status)
		check(config);
	arguments_are_of("", "");
	line = g_strjoinv(" ", (char **)words->pdata);
	command_line = g_strdup_printf("memtoll %s", line);
	config->session.command_line = g_intern_string(command_line);
	make_detailed(config);
	return status;
}

/* On the command line alone, and then with each line: what is wrong ends the process. */
static int try_lines(const struct asked *asked, const GPtrArray *lines, const char *consequence)
{
	struct watch_config config;
	int status;

	set_defaults(&config);
	status = parse(asked->argc, asked->argv, &config);
	if (!status)
		status = parse_lines(asked, lines, consequence, &config);
	watch_config_clear(&config);
	return status;
}

static GPtrArray *read_lines(const char *path, const char *consequence)
{
	g_autofree char *error = NULL;
	GPtrArray *lines = option_file_read(path, &error);

	if (!lines)
		message("%s:%s%s", path, error, consequence);
	return lines;
}

#define KEPT "; the options stay as they were"
#define ALL_WELL 100 /* no exit status of parsing */

/* In a process of its own: what is wrong, or --help, ends one. */
static bool is_well(const struct asked *asked, const GPtrArray *lines)
{
	struct watch_config config;
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child) {
		status = try_lines(asked, lines, KEPT);
		if (!status)
			status = parse_all(asked, lines, KEPT, &config);
		_exit(status ? status : ALL_WELL);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == ALL_WELL)
		return true;
	if (child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != STATUS_USAGE)
		message("%s: not options of a watch that goes on" KEPT, asked->path);
	return false;
}

static bool reread(void *context, struct watch_config *fresh)
{
	const struct asked *asked = context;
	g_autoptr(GPtrArray) lines = read_lines(asked->path, KEPT);

	return lines && is_well(asked, lines) && !parse_all(asked, lines, KEPT, fresh);
}

/* At the start; reread() is later. On failure config has nothing to clear. */
static int read_options(struct asked *asked, struct watch_config *config)
{
	g_autoptr(GPtrArray) lines = NULL;
	int status;

	set_defaults(config);
	status = parse(asked->argc, asked->argv, config);
	asked->path = config->options_path;
	watch_config_clear(config);
	if (!status && asked->path) {
		lines = read_lines(asked->path, "");
		status = lines ? try_lines(asked, lines, "") : STATUS_USAGE;
	}
	return status ? status : parse_all(asked, lines, "", config);
}

int cli_watch(int argc, char **argv)
{
	struct asked asked = { .argc = argc, .argv = argv };
	struct watch_config config;
	int status;

	watch_log_messages();
	status = read_options(&asked, &config);
	if (status)
		return status;
	if (asked.path) {
		config.reread = reread;
		config.reread_context = &asked;
	}
	status = check_privileges();
	if (!status)
		status = watch_run(&config);
	watch_config_clear(&config);
	return status;
}
