// SPDX-License-Identifier: GPL-2.0
/*
 * recording_guard.c: the connection to a recording that may be anybody's
 * (sqlite.org/security.html).
 *
 * Its schema is statements of whoever made the file. Its views and triggers are never used
 * (recording_schema.h); what else it has, defaults and columns that are computed, is asked for what
 * it answers, never for what it does: ATTACH, VACUUM INTO and the like write files with the rights
 * of who reads.
 */
#include "recording/recording_guard.h"

#include <glib.h>

/* Pragmas that tell something of the file. */
static const char *const pragmas[] = {
	"application_id", "data_version", "page_count",	  "page_size", "quick_check",
	"table_info",	  "table_xinfo",  "user_version", NULL,
};

/* Functions that reach beyond the database, where a build of SQLite has them. */
static const char *const functions[] = {
	"edit", "fts3_tokenizer", "load_extension", "readfile", "writefile", NULL,
};

static int judge(void *unused, int action, const char *first, const char *second,
		 const char *database, const char *trigger)
{
	(void)unused;
	(void)trigger;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
	case SQLITE_SAVEPOINT:
	case SQLITE_TRANSACTION:
	case SQLITE_CREATE_TEMP_INDEX:
	case SQLITE_CREATE_TEMP_TABLE:
	case SQLITE_CREATE_TEMP_VIEW:
	case SQLITE_DROP_TEMP_INDEX:
	case SQLITE_DROP_TEMP_TABLE:
	case SQLITE_DROP_TEMP_VIEW:
		return SQLITE_OK;
	case SQLITE_UPDATE:
		/*
		 * How a table-valued function (json_each) says its columns; the file is read only.
		 */
		if (!g_strcmp0(first, "sqlite_master"))
			return SQLITE_OK;
		/* fall through */
	case SQLITE_INSERT:
	case SQLITE_DELETE:
	case SQLITE_REINDEX:
		return !g_strcmp0(database, "temp") ? SQLITE_OK : SQLITE_DENY;
	case SQLITE_FUNCTION:
		return second && g_strv_contains(functions, second) ? SQLITE_DENY : SQLITE_OK;
	case SQLITE_PRAGMA:
		return first && g_strv_contains(pragmas, first) ? SQLITE_OK : SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

/* As often as this is asked: a thousandth of a second. */
#define STEPS_AT_ONCE 100000

/* Of the statement that is running: one at a time, on any connection. */
static int64_t steps_left, steps_allowed;

static int begin_statement(unsigned int what, void *unused, void *statement, void *text)
{
	(void)what;
	(void)unused;
	(void)statement;
	(void)text;
	steps_left = steps_allowed;
	return 0;
}

static int take_steps(void *unused)
{
	(void)unused;
	steps_left -= STEPS_AT_ONCE;
	return steps_left < 0;
}

static int64_t file_bytes(sqlite3 *database)
{
	sqlite3_stmt *statement = NULL;
	int64_t bytes = 0;

	if (sqlite3_prepare_v2(database,
			       "SELECT page_count * page_size FROM pragma_page_count(),"
			       " pragma_page_size()",
			       -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		bytes = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return bytes;
}

/* Facts that make a view of ours never end, or take all memory, are of whoever made the file. */
static void limit_work(sqlite3 *database)
{
	steps_allowed =
		MAX(steps_allowed, GUARD_STEPS + GUARD_STEPS_PER_BYTE * file_bytes(database));
	steps_left = steps_allowed;
	sqlite3_trace_v2(database, SQLITE_TRACE_STMT, begin_statement, NULL);
	sqlite3_progress_handler(database, STEPS_AT_ONCE, take_steps, NULL);
	sqlite3_hard_heap_limit64(GUARD_HEAP_BYTES);
}

void recording_guard(sqlite3 *database)
{
	limit_work(database);
	/*
	 * The schema may call nothing that has effects, and no table of SQLite's own may be
	 * written.
	 */
	sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	/* Before, temporary views were no exception. */
	if (sqlite3_libversion_number() >= 3035000)
		sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_set_authorizer(database, judge, NULL);
}
