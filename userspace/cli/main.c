// SPDX-License-Identifier: GPL-2.0
/* main.c: which subcommand. */
#include <bpf/libbpf.h>
#include <elfutils/libdwfl.h>
#include <glib.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/cli.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "record", cli_record, "trace a process or a command into a recording" },
	{ "stat", cli_stat, "the same without a file: prints the verdict and the toll" },
	{ "top", cli_top, "a live screen of a target, or of the whole machine" },
	{ "hold", cli_hold, "who holds the memory: live, kept by malloc, or anything else" },
	{ "watch", cli_watch, "record for weeks: rotating recordings, metrics, triggers" },
	{ "report", cli_report, "print a recording as text or JSON" },
	{ "symbolize", cli_symbolize, "name a recording's frames again, from debug files" },
	{ "compare", cli_compare, "what a change of environment does to a command's toll" },
	{ "gate", cli_gate, "hold what a command's memory costs against a budget, for CI" },
	{ "explain", cli_explain, "the long form of a piece of advice" },
	{ "doctor", cli_doctor, "what this kernel and an allocator allow" },
	{ "demo", cli_demo, "memtoll at work, or a recording of it where nothing can be traced" },
};

#define SLIP_LETTERS 2
#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif
#define COMMANDS (sizeof(commands) / sizeof(*commands))

static void usage(FILE *out)
{
	size_t i;

	fputs("Usage: memtoll COMMAND [OPTION...]\n"
	      "Find where zeroing or swap traffic dominates a live process, and which code is "
	      "behind it.\n\nCommands:\n",
	      out);
	for (i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].help);
	fputs("\nExit status:\n"
	      "  0 done, 1 failed, 2 usage, 3 this kernel or these privileges cannot do it,\n"
	      "  4 finished but losses exceed the limit, 5 over budget (gate)\n"
	      "\nExamples:\n"
	      "  memtoll stat -- ./program --its-option\n"
	      "  memtoll record -p 1234 -d 10s -o server.memtoll\n"
	      "  memtoll report server.memtoll\n"
	      "  memtoll report --json server.memtoll\n"
	      "\n'memtoll COMMAND --help' describes the options of a command.\n",
	      out);
}

/* For what makes manual pages and completion; each has --list-options. */
static void list_commands(void)
{
	size_t i;

	for (i = 0; i < COMMANDS; i++)
		printf("command\t%s\t%s\n", commands[i].name, commands[i].help);
}

/* libbpf's own words are for those who debug memtoll. */
static int on_libbpf(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level;
	return getenv("MEMTOLL_DEBUG") ? vfprintf(stderr, format, arguments) : 0;
}

/* The first line is for programs. What else decides what it can do: a report of a bug names it. */
static void print_version(void)
{
	printf("memtoll %s\nlibbpf %s, elfutils %s, SQLite %s, GLib %u.%u.%u; built by %s\n",
	       memtoll_version, libbpf_version_string(), dwfl_version(NULL), sqlite3_libversion(),
	       glib_major_version, glib_minor_version, glib_micro_version, COMPILER);
}

/* What was meant, if it is a slip of the fingers. */
static const char *nearest(const char *typed)
{
	size_t least = SLIP_LETTERS + 1, i;
	const char *name = NULL;

	for (i = 0; i < COMMANDS; i++) {
		size_t distance = text_distance(typed, commands[i].name);

		if (distance < least) {
			least = distance;
			name = commands[i].name;
		}
	}
	return name;
}

int main(int argc, char **argv)
{
	const char *near;
	size_t i;

	libbpf_set_print(on_libbpf);
	if (argc < 2) {
		message("no command given; try 'memtoll --help'");
		return STATUS_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return STATUS_DONE;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V") ||
	    !strcmp(argv[1], "version")) {
		print_version();
		return STATUS_DONE;
	}
	if (!strcmp(argv[1], "--list-commands")) {
		list_commands();
		return STATUS_DONE;
	}
	for (i = 0; i < COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	near = nearest(argv[1]);
	if (near)
		message("no command '%s'; did you mean '%s'? Try 'memtoll --help'", argv[1], near);
	else
		message("no command '%s'; try 'memtoll --help'", argv[1]);
	return STATUS_USAGE;
}
