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
#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "recording/query_number.h"

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

/* Frames are named again (report/resymbolize.c). */
static int judge_change(void *unused, int action, const char *first, const char *second,
			const char *database, const char *trigger)
{
	static const char *const changed[] = { "frame", "stack_frame", NULL };

	if ((action == SQLITE_INSERT || action == SQLITE_DELETE) && !g_strcmp0(database, "main"))
		return g_strv_contains(changed, first) ? SQLITE_OK : SQLITE_DENY;
	return judge(unused, action, first, second, database, trigger);
}

/* As often as this is asked: fifty microseconds. */
#define STEPS_AT_ONCE 5000
/* Bytes of a pattern of LIKE or GLOB: those of our views are shorter, and none is a fact. */
#define PATTERN_MAX 512
/* As often as the time is looked at. */
#define LOOK_NS 5000000ULL

/* What may still be done for the recording that was opened last. */
static struct {
	int64_t steps;
	int64_t weight;	    /* what a step takes of them */
	uint64_t looked_ns; /* CLOCK_MONOTONIC, which costs no system call */
	uint64_t cpu_ns;    /* of this thread, charged up to there */
	int64_t counted;    /* steps since then */
	bool idle;	    /* no statement is under way since one has ended: the time is ours */
} left;

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A step that copies megabytes is charged as the many that take as long. */
static void charge(void)
{
	uint64_t now = cpu_ns();
	int64_t slow = (int64_t)((now - left.cpu_ns) / GUARD_STEP_NS);

	left.steps -= MAX(slow - left.counted, 0);
	left.counted = 0;
	left.cpu_ns = now;
	left.looked_ns = now_ns();
}

static int take_steps(void *unused)
{
	(void)unused;
	left.steps -= STEPS_AT_ONCE * left.weight;
	left.counted += STEPS_AT_ONCE * left.weight;
	if (now_ns() - left.looked_ns > LOOK_NS)
		charge();
	return left.steps < 0;
}

/* A statement with few steps is not asked about, however long they take. */
static void begin_statement(sqlite3 *database)
{
	if (left.idle) {
		left.cpu_ns = cpu_ns();
		left.counted = 0;
		left.idle = false;
	}
	charge();
	if (left.steps < 0)
		sqlite3_interrupt(database);
}

static bool other_runs(sqlite3 *database, const sqlite3_stmt *ended)
{
	sqlite3_stmt *statement = NULL;

	while ((statement = sqlite3_next_stmt(database, statement)))
		if (statement != ended && sqlite3_stmt_busy(statement))
			return true;
	return false;
}

/* What is done until the next one begins, reading debug information say, is not its work. */
static void end_statement(sqlite3 *database, const sqlite3_stmt *statement)
{
	charge();
	left.idle = !other_runs(database, statement);
}

static int watch_statement(unsigned int what, void *database, void *statement, void *unused)
{
	(void)unused;
	if (what == SQLITE_TRACE_STMT)
		begin_statement(database);
	else
		end_statement(database, statement);
	return 0;
}

static void allow(int64_t steps, int64_t weight)
{
	left.cpu_ns = cpu_ns();
	left.counted = 0;
	left.looked_ns = 0;
	left.steps = steps;
	left.weight = weight;
	left.idle = false;
}

/* SQLITE_OK, or the status that prevented it. */
static int file_bytes(sqlite3 *database, int64_t *bytes)
{
	int status = query_number(database,
				  "SELECT page_count * page_size FROM pragma_page_count(),"
				  " pragma_page_size()",
				  bytes);

	return status == SQLITE_ROW ? SQLITE_OK : status;
}

/* Of a file with holes only what is there; 0 where its file system does not tell. */
static int64_t bytes_on_disk(sqlite3 *database)
{
	const char *path = sqlite3_db_filename(database, "main");
	struct stat status;

	return path && *path && !stat(path, &status) ? (int64_t)status.st_blocks * 512 : 0;
}

/*
 * Facts that make a view of ours never end, or take all memory, are of whoever made the file, and so
 * is how large its schema is, which is read first of all.
 */
static int limit_work(sqlite3 *database)
{
	static const struct {
		int what, limit;
	} limits[] = {
		{ SQLITE_LIMIT_LENGTH, GUARD_VALUE_BYTES },
		{ SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_MAX },
		{ SQLITE_LIMIT_ATTACHED, 0 },
		{ SQLITE_LIMIT_WORKER_THREADS, 0 },
	};
	int64_t bytes = 0, there;
	int status;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(limits); i++)
		sqlite3_limit(database, limits[i].what, limits[i].limit);
	allow(GUARD_STEPS_OPEN, GUARD_OPEN_WEIGHT);
	sqlite3_trace_v2(database, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, watch_statement,
			 database);
	sqlite3_progress_handler(database, STEPS_AT_ONCE, take_steps, NULL);
	sqlite3_hard_heap_limit64(GUARD_HEAP_BYTES);
	status = file_bytes(database, &bytes);
	there = bytes_on_disk(database);
	if (there)
		bytes = MIN(bytes, GUARD_COMPRESSED * there);
	sqlite3_hard_heap_limit64(MIN(GUARD_HEAP_BYTES + GUARD_HEAP_PER_BYTE * bytes,
				      GUARD_HEAP_BYTES_MAX));
	if (status == SQLITE_OK)
		allow(GUARD_STEPS + GUARD_STEPS_PER_BYTE * bytes, 1);
	return status;
}

void recording_guard_length(sqlite3 *database, bool json)
{
	/* It is lowered to what SQLite was built with. */
	sqlite3_limit(database, SQLITE_LIMIT_LENGTH, json ? INT_MAX : GUARD_VALUE_BYTES);
}

static int guard(sqlite3 *database, bool change)
{
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
	sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_FKEY, 0, NULL);
	sqlite3_set_authorizer(database, change ? judge_change : judge, NULL);
	return limit_work(database);
}

int recording_guard(sqlite3 *database)
{
	return guard(database, false);
}

int recording_guard_change(sqlite3 *database)
{
	return guard(database, true);
}
