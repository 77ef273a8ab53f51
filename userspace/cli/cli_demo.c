// SPDX-License-Identifier: GPL-2.0
/*
 * cli_demo.c: memtoll demo [EXAMPLE]: memtoll at work. Traces a program of its own or, where that is
 * not possible, shows what was recorded of one like it.
 */
#include <argp.h>
#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "base/shell.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/paged.h"
#include "host/output_file.h"
#include "host/privileges.h"
#include "recording/recording.h"
#include "report/examples.h"
#include "report/report.h"

#define BLOCK_BYTES (10UL << 20)
#define BLOCKS 1009
#define SITES_FULL 10
#define LINES 24
#define LINES_ABOVE 1 /* of the report */

struct arguments {
	const char *example;
	const char *output;
	bool force;
	bool full;
	bool program; /* be what is traced */
};

enum option_key {
	OPTION_FULL = 256,
	OPTION_FORCE,
	OPTION_PROGRAM,
};

static const struct argp_option options[] = {
	{ "full", OPTION_FULL, NULL, 0,
	  "everything: evidence of the advice, all tolls, whole stacks, checks and notes", 0 },
	{ "output", 'o', "FILE", 0, "write the recording of EXAMPLE to FILE instead", 0 },
	{ "force", OPTION_FORCE, NULL, 0, "replace FILE if it exists", 0 },
	{ "program", OPTION_PROGRAM, NULL, OPTION_HIDDEN, NULL, 0 },
	{ 0 },
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case OPTION_FULL:
		arguments->full = true;
		return 0;
	case 'o':
		arguments->output = value;
		return 0;
	case OPTION_FORCE:
		arguments->force = true;
		return 0;
	case OPTION_PROGRAM:
		arguments->program = true;
		return 0;
	case ARGP_KEY_ARG:
		if (arguments->example)
			refuse("demo: %s: one example at a time (see memtoll demo --help)", value);
		if (!example_find(value))
			refuse("demo: no example %s; there are zeroing, swap and healthy", value);
		arguments->example = value;
		return 0;
	case ARGP_KEY_END:
		if (arguments->output && !arguments->example)
			refuse("demo: -o %s: of which example? zeroing, swap or healthy",
			       arguments->output);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "[EXAMPLE]",
	.doc = "Show memtoll at work: trace a program that callocs and frees 10 MiB again and again, "
	       "or, where this user or kernel cannot trace, what was recorded of one. With EXAMPLE: a "
	       "recording that memtoll has with it (zeroing, swap or healthy); needs no privileges.\v"
	       "Examples:\n"
	       "  memtoll demo\n"
	       "  memtoll demo swap\n"
	       "  memtoll demo swap -o swap.memtoll\n\n"
	       "Exit status: 0 done, 1 failed, 2 usage, 4 done, but losses exceed 1 %.\n",
};

void *volatile demo_sink;

/* Exported by the Makefile: it has its name where packages strip the others. */
__attribute__((noinline)) void clear_block(void)
{
	demo_sink = calloc(BLOCK_BYTES, 1);
}

/* What is traced: calloc clears each block anew, and nobody reads it. */
static int be_program(void)
{
	int i;

	for (i = 0; i < BLOCKS; i++) {
		clear_block();
		if (!demo_sink)
			return STATUS_FAILED;
		free(demo_sink);
	}
	return STATUS_DONE;
}

static int write_example(const struct example *example, const struct arguments *arguments)
{
	struct output_file *file = output_file_open(arguments->output, arguments->force, false);
	size_t size = example->end - example->begin;

	if (!file)
		return STATUS_FAILED;
	if (fwrite(example->begin, 1, size, output_file_stream(file)) != size) {
		message("cannot write %s: %s", arguments->output, strerror(errno));
		output_file_remove(file);
		return STATUS_FAILED;
	}
	if (output_file_finish(file))
		return STATUS_FAILED;
	message("wrote %s", arguments->output);
	return STATUS_DONE;
}

static int print_report(sqlite3 *database, const struct example *example, bool full)
{
	g_autofree char *command = g_strdup_printf("memtoll demo --full %s", example->name);
	struct report_options report = { .sites = SITES_FULL,
					 .color = wants_color(),
					 .full_command = command };

	terminal_size(&report.columns, &report.lines);
	report.lines = (report.lines ?: LINES) - LINES_ABOVE;
	if (!full)
		return report_short(database, &report, stdout);
	return print_paged(database, &report);
}

/* SQLite reads files only: it gets one of its own, for as long as it reads. */
static int show_example(const struct example *example, bool full)
{
	g_autofree char *path = g_build_filename(g_get_tmp_dir(), "memtoll-demo-XXXXXX", NULL);
	size_t size = example->end - example->begin;
	int status = STATUS_FAILED, descriptor;
	sqlite3 *database = NULL;

	descriptor = mkstemp(path);
	if (descriptor < 0) {
		message("no file for the recording, %s: %s", path, strerror(errno));
		return status;
	}
	if (write(descriptor, example->begin, size) != (ssize_t)size) {
		message("cannot write %s: %s", path, strerror(errno));
		goto out;
	}
	database = recording_open(path);
	if (!database)
		goto out;
	printf("Recorded before: %s.\n", example->what);
	if (!print_report(database, example, full))
		status = STATUS_DONE;
	sqlite3_close(database);
out:
	close(descriptor);
	unlink(path);
	return status;
}

/* As `make demo`: the program is this one. */
static int trace_program(bool full)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
	char *words[8];
	int count = 0;

	if (!self) {
		message("/proc is not mounted");
		return STATUS_UNSUPPORTED;
	}
	words[count++] = (char *)"stat";
	if (full)
		words[count++] = (char *)"--full";
	words[count++] = (char *)"--";
	words[count++] = self;
	words[count++] = (char *)"demo";
	words[count++] = (char *)"--program";
	words[count] = NULL;
	return cli_stat(count, words);
}

int cli_demo(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	int status;

	status = parse_arguments(&argp, argc, argv, &arguments);
	if (status)
		return status;
	if (arguments.program)
		return be_program();
	if (arguments.output)
		return write_example(example_find(arguments.example), &arguments);
	if (!arguments.example) {
		puts("A program that callocs and frees 10 MiB, 1009 times, without touching it:\n");
		fflush(stdout);
		status = trace_program(arguments.full);
		if (status != STATUS_UNSUPPORTED)
			return status;
		message("so no program is traced here; what follows is a recording");
	}
	privileges_keep(arguments.full ? PRIVILEGES_LEAVE : PRIVILEGES_NONE);
	return show_example(example_find(arguments.example ?: "zeroing"), arguments.full);
}
