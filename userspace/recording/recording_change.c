// SPDX-License-Identifier: GPL-2.0
/*
 * recording_change.c: a complete recording, to be written to.
 *
 * What is written makes SQLite run what the file's schema has for it: triggers, constraints,
 * expressions of indexes and defaults. A recording has none of them.
 */
#include "recording/recording_change.h"

#include <glib.h>
#include <sys/stat.h>

#include "base/message.h"
#include "recording/query_number.h"
#include "recording/recording.h"
#include "recording/recording_guard.h"
#include "recording/recording_vfs.h"

static bool counts(sqlite3 *database, const char *from, int64_t rows)
{
	g_autofree char *sql = g_strconcat("SELECT COUNT(*) FROM ", from, NULL);

	return query_number_or(database, sql, -1) == rows;
}

static bool is_complete(sqlite3 *database)
{
	return counts(database, "meta WHERE key = 'complete' AND value = '1'", 1);
}

static bool is_redacted(sqlite3 *database)
{
	return counts(database, "meta WHERE key = 'redacted'", 1);
}

/* Triggers are off (recording_guard.h), constraints as well (PRAGMA ignore_check_constraints). */
static bool runs_nothing(sqlite3 *database)
{
	return counts(database, "sqlite_master WHERE type = 'index' AND sql IS NOT NULL", 0) &&
	       counts(database,
		      "pragma_table_xinfo('frame', 'main')"
		      " WHERE dflt_value IS NULL AND hidden = 0",
		      8) &&
	       counts(database, "pragma_table_xinfo('frame', 'main')", 8) &&
	       counts(database, "pragma_table_xinfo('stack_frame', 'main') WHERE hidden = 0", 5);
}

/* No journal is there, whoever left it: it is neither played back nor written over. */
static bool has_journal(const char *name)
{
	g_autofree char *journal = g_strconcat(name, "-journal", NULL);
	struct stat status;

	if (lstat(journal, &status))
		return false;
	message("symbolize: %s is there: somebody writes to the recording, or was cut off; it is "
		"left as it was",
		journal);
	return true;
}

/* Complete, as far as reading tells, and without a journal, which a complete one never has. */
static bool may_be_changed(const char *path, const char *name)
{
	sqlite3 *database = recording_open(path);
	bool complete, redacted;

	if (!database)
		return false;
	complete = is_complete(database);
	redacted = is_redacted(database);
	sqlite3_close(database);
	if (redacted) {
		message("symbolize: %s is redacted: it has neither the addresses nor the build-ids "
			"that code is named by; use --redact on a recording that is symbolized",
			path);
		return false;
	}
	/* Its tracer holds the numbers of frames in memory and goes on counting from there. */
	if (!complete)
		message("symbolize: %s is still being written, or was cut short: only complete "
			"recordings are changed",
			path);
	return complete && !has_journal(name);
}

sqlite3 *recording_open_to_change(const char *path)
{
	g_autofree char *name = path[0] == '/' ? g_strdup(path) : g_strconcat("./", path, NULL);
	sqlite3 *database = NULL;

	if (!may_be_changed(path, name))
		return NULL;
	if (sqlite3_open_v2(name, &database, SQLITE_OPEN_READWRITE,
			    recording_vfs(RECORDING_WRITTEN)) != SQLITE_OK ||
	    sqlite3_db_readonly(database, "main")) {
		message("symbolize: %s cannot be written to", path);
		goto out;
	}
	sqlite3_exec(database, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL);
	if (recording_guard_change(database) != SQLITE_OK ||
	    sqlite3_exec(database, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK) {
		message("symbolize: %s was left as it was: %s", path, sqlite3_errmsg(database));
		goto out;
	}
	/* Again: what was looked at may have been replaced since. */
	if (is_complete(database) && runs_nothing(database))
		return database;
	message("symbolize: %s was left as it was: it has an index or a column that no recording "
		"has",
		path);
out:
	sqlite3_close(database);
	return NULL;
}
