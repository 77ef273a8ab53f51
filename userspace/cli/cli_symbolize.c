// SPDX-License-Identifier: GPL-2.0
/* cli_symbolize.c: memtoll symbolize FILE [--debug DIR]...: name a recording's frames again. */
#include <argp.h>
#include <glib.h>
#include <stdio.h>

#include "base/message.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "host/privileges.h"
#include "recording/recording_change.h"
#include "report/resymbolize.h"

struct arguments {
	const char *file;
	GPtrArray *directories;
};

static const struct argp_option options[] = {
	{ "debug", 'd', "DIR", 0, "look for files there first; may be given more than once", 0 },
	{ 0 },
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'd':
		if (!g_file_test(value, G_FILE_TEST_IS_DIR))
			refuse("symbolize: --debug %s: no such directory", value);
		g_ptr_array_add(arguments->directories, value);
		return 0;
	case ARGP_KEY_ARG:
		take_recording(&arguments->file, "symbolize", value);
		return 0;
	case ARGP_KEY_END:
		want_recording(arguments->file, "symbolize");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "FILE",
	.doc = "Name the native frames of a recording again, from debug files that were installed "
	       "since or that another machine has. Files are identified by their build-ids.\v"
	       "Directories are laid out as /usr/lib/debug, as a root directory, as the cache of "
	       "debuginfod-find (~/.cache/debuginfod_client), or just hold the files. After them the modules' own paths and /usr/lib/debug are looked at. What is "
	       "not found keeps its names.\n\n"
	       "EXAMPLES\n"
	       "  memtoll symbolize server.memtoll\n"
	       "  memtoll symbolize server.memtoll --debug ./build --debug ./symbols\n\n"
	       "Exit status: 0 done, 1 the file cannot be read or written, 2 usage.\n",
};

static int run(const struct arguments *arguments)
{
	struct resymbolize_result result;
	sqlite3 *database;
	int err;

	privileges_keep(PRIVILEGES_WRITE);
	database = recording_open_to_change(arguments->file);
	if (!database)
		return STATUS_FAILED;
	err = resymbolize(database, (char **)arguments->directories->pdata, &result);
	sqlite3_close(database);
	if (err) {
		message("symbolize: %s was left as it was: %s", arguments->file, g_strerror(-err));
		return STATUS_FAILED;
	}
	printf("%llu of %llu modules found; of %llu addresses %llu have a function, %llu a line\n",
	       (unsigned long long)result.found, (unsigned long long)result.modules,
	       (unsigned long long)result.addresses, (unsigned long long)result.functions,
	       (unsigned long long)result.lines);
	return STATUS_DONE;
}

int cli_symbolize(int argc, char **argv)
{
	struct arguments arguments = { .directories = g_ptr_array_new() };
	int status = parse_arguments(&argp, argc, argv, &arguments);

	g_ptr_array_add(arguments.directories, NULL);
	if (!status)
		status = run(&arguments);
	g_ptr_array_free(arguments.directories, TRUE);
	return status;
}
