/* SPDX-License-Identifier: GPL-2.0 */
/* recordings.h: recordings in a directory made for a group of tests, and what is in them. */
#ifndef MEMTOLL_TEST_RECORDINGS_H
#define MEMTOLL_TEST_RECORDINGS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glib.h>
#include <sqlite3.h>
#include <stdio.h>

#include "recording/recording.h"
#include "trees.h"

static char *directory;

static inline char *in_directory(const char *name)
{
	return g_build_filename(directory, name, NULL);
}

static inline int make_directory(void **state)
{
	(void)state;
	directory = g_dir_make_tmp("memtoll-recording-XXXXXX", NULL);
	return directory ? 0 : -1;
}

/* With all that is below it: some tests make directories of their own in there. */
static inline int remove_directory(void **state)
{
	int err = remove_tree(directory);

	(void)state;
	g_free(directory);
	return err;
}

/* One integer, read by a connection of its own; -1 where there is no row. */
static inline sqlite3_int64 number_of(sqlite3 *database, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	sqlite3_int64 value = -1;

	assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
	if (sqlite3_step(statement) == SQLITE_ROW)
		value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return value;
}

static inline sqlite3_int64 number(const char *path, const char *sql)
{
	sqlite3 *database = NULL;
	sqlite3_int64 value;

	assert_int_equal(sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	sqlite3_busy_timeout(database, 1000);
	value = number_of(database, sql);
	sqlite3_close(database);
	return value;
}

static inline void add_process(struct recording *recording, pid_t pid, const char *comm)
{
	const struct process_fact fact = { .pid = pid,
					   .comm = comm,
					   .command = comm,
					   .executable = "/bin/x",
					   .start_ns = 7,
					   .role = "target" };

	assert_int_equal(recording_process(recording, &fact), 0);
}

static inline void add_call(struct recording *recording, uint64_t stack_id, uint64_t calls)
{
	struct call_fact fact = { .pid = 42,
				  .call = "calloc",
				  .stack_id = stack_id,
				  .known_clearing = true,
				  .timed_calls = calls };

	fact.sum.bytes = calls * 4099;
	fact.sum.nested_calls = 3;
	assert_int_equal(recording_call(recording, &fact), 0);
}

static inline int add_counters(struct recording *recording, uint64_t cpu_ns, uint64_t minor,
			       uint64_t major)
{
	return recording_process_slice(recording,
				       &(struct process_slice_fact){ .pid = 42,
								     .cpu_ns = cpu_ns,
								     .minor_faults = minor,
								     .major_faults = major,
								     .rss_bytes = -1,
								     .swap_bytes = -1 });
}

static inline void execute(const char *path, const char *sql)
{
	sqlite3 *database = NULL;

	assert_int_equal(sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(database);
}

/* A finished recording of one slice with 23 calls. */
static inline char *finished(const char *name)
{
	char *path = in_directory(name);
	struct recording *recording = recording_create(path, false);

	assert_non_null(recording);
	add_process(recording, 42, "program");
	assert_int_equal(recording_slice_begin(recording, 100), 0);
	add_call(recording, 5, 23);
	assert_int_equal(add_counters(recording, 1000, 2, 0), 0);
	assert_int_equal(recording_slice_commit(recording, 200), 0);
	assert_int_equal(recording_finish(recording), 0);
	recording_close(recording);
	return path;
}

#endif /* MEMTOLL_TEST_RECORDINGS_H */
