// SPDX-License-Identifier: GPL-2.0
/* cli_symbolize.c: memtoll symbolize FILE [--debug DIR]...: name a recording's frames again. */
#include <argp.h>
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "host/privileges.h"
#include "recording/recording.h"
#include "recording/recording_vfs.h"
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
	       "Directories are laid out as /usr/lib/debug, as a root directory, or just hold the "
	       "files. After them the modules' own paths and /usr/lib/debug are looked at. What is "
	       "not found keeps its names.\n\n"
	       "EXAMPLES\n"
	       "  memtoll symbolize server.memtoll\n"
	       "  memtoll symbolize server.memtoll --debug ./build --debug ./symbols\n\n"
	       "Exit status: 0 done, 1 the file cannot be read or written, 2 usage.\n",
};

static bool is_complete(sqlite3 *database)
{
	sqlite3_stmt *statement = NULL;
	bool complete;

	complete = sqlite3_prepare_v2(database,
				      "SELECT 1 FROM meta WHERE key = 'complete' AND value = '1'",
				      -1, &statement, NULL) == SQLITE_OK &&
		   sqlite3_step(statement) == SQLITE_ROW;
	sqlite3_finalize(statement);
	return complete;
}

/* The recording, to be written to; NULL after one line. */
static sqlite3 *open_writable(const char *path)
{
	sqlite3 *database;
	g_autofree char *name = path[0] == '/' ? g_strdup(path) : g_strconcat("./", path, NULL);
	g_autofree char *journal = g_strconcat(name, "-journal", NULL);
	struct stat status;

	privileges_keep(PRIVILEGES_WRITE);
	database = recording_open(path);
	if (!database)
		return NULL;
	/* Its tracer holds the numbers of frames in memory and goes on counting from there. */
	if (!is_complete(database)) {
		message("symbolize: %s is still being written, or was cut short: only complete "
			"recordings are changed",
			path);
		sqlite3_close(database);
		return NULL;
	}
	sqlite3_close(database);
	database = NULL;
	/*
	 * Whoever left it: it is neither played back nor written over. A complete recording has
	 * none.
	 */
	if (!lstat(journal, &status)) {
		message("symbolize: %s is there: somebody writes to the recording, or was cut off; it is "
			"left as it was",
			journal);
		return NULL;
	}
	if (sqlite3_open_v2(name, &database, SQLITE_OPEN_READWRITE,
			    recording_vfs(RECORDING_WRITTEN)) == SQLITE_OK &&
	    !sqlite3_db_readonly(database, "main")) {
		sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
		sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
		sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
		return database;
	}
	message("symbolize: %s cannot be written to", path);
	sqlite3_close(database);
	return NULL;
}

static int run(const struct arguments *arguments)
{
	sqlite3 *database = open_writable(arguments->file);
	struct resymbolize_result result;
	int err;

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
