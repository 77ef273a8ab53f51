// SPDX-License-Identifier: GPL-2.0
/*
 * test_recording_hostile.c: recordings that somebody made to do harm to who opens them, and files
 * that lie where one is written. Slow: what takes too long is let go on until it is ended.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording/recording.h"
#include "recording/recording_guard.h"
#include "recordings.h"
#include "report/report.h"
#include "report/report_views.h"
#include "said.h"

static void copy_file(const char *from, const char *to)
{
	char *contents = NULL;
	gsize length;

	assert_true(g_file_get_contents(from, &contents, &length, NULL));
	assert_true(g_file_set_contents(to, contents, (gssize)length, NULL));
	g_free(contents);
}

static char *checksum(const char *path)
{
	char *contents = NULL, *sum;
	gsize length = 0;

	assert_true(g_file_get_contents(path, &contents, &length, NULL));
	sum = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)contents, length);
	g_free(contents);
	return sum;
}

/*
 * A journal of no pages that is hot, and whose super-journal is another file (file format, 3.):
 * SQLite's own way to play it back ends with that file deleted.
 */
static void plant_journal(const char *recording, const char *victim)
{
	static const guint8 magic[] = { 0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7 };
	char *path = g_strconcat(recording, "-journal", NULL);
	GByteArray *bytes = g_byte_array_new();
	guint32 pages = (guint32)number(recording, "PRAGMA page_count"), sum = 0, word;
	const guint32 header[] = { 0, 1, pages, 512, 4096 };
	size_t i;

	g_byte_array_append(bytes, magic, sizeof(magic));
	for (i = 0; i < G_N_ELEMENTS(header); i++) {
		word = GUINT32_TO_BE(header[i]);
		g_byte_array_append(bytes, (const guint8 *)&word, sizeof(word));
	}
	g_byte_array_set_size(bytes, 512);
	memset(bytes->data + sizeof(magic) + sizeof(header), 0,
	       512 - sizeof(magic) - sizeof(header));
	/* The page that holds the lock's bytes, which no database uses. */
	word = GUINT32_TO_BE((1U << 30) / 4096 + 1);
	g_byte_array_append(bytes, (const guint8 *)&word, sizeof(word));
	g_byte_array_append(bytes, (const guint8 *)victim, (guint)strlen(victim));
	for (i = 0; i < strlen(victim); i++)
		sum += (guint32)victim[i];
	word = GUINT32_TO_BE((guint32)strlen(victim));
	g_byte_array_append(bytes, (const guint8 *)&word, sizeof(word));
	word = GUINT32_TO_BE(sum);
	g_byte_array_append(bytes, (const guint8 *)&word, sizeof(word));
	g_byte_array_append(bytes, magic, sizeof(magic));
	assert_true(g_file_set_contents(path, (const char *)bytes->data, (gssize)bytes->len, NULL));
	g_byte_array_free(bytes, TRUE);
	g_free(path);
}

static char *make_victim(const char *name)
{
	char *path = in_directory(name);

	assert_true(g_file_set_contents(path, "of somebody else\n", -1, NULL));
	return path;
}

/* Somebody who may write to the directory leaves a journal between two commits. */
static void test_planted_while_written(void **state)
{
	char *path = in_directory("planted"), *victim = make_victim("victim");
	char *link = in_directory("planted-journal");
	struct recording *recording = recording_create(path, false);
	int i;

	(void)state;
	assert_non_null(recording);
	for (i = 1; i <= 7; i++) {
		if (i % 2)
			plant_journal(path, victim);
		else
			assert_int_equal(symlink(victim, link), 0);
		assert_int_equal(recording_slice_begin(recording, 10 * i), 0);
		add_call(recording, 5, 1);
		assert_int_equal(recording_slice_commit(recording, 10 * i + 5), 0);
		assert_int_equal(access(victim, F_OK), 0);
	}
	assert_int_equal(recording_finish(recording), 0);
	recording_close(recording);
	assert_int_equal(number(path, "SELECT SUM(calls) FROM call"), 7);
	assert_int_not_equal(access(link, F_OK), 0);
	g_free(link);
	g_free(victim);
	g_free(path);
}

/* What is found beside a recording is played back by nobody who reads it. */
static void test_planted_while_read(void **state)
{
	char *path = finished("read"), *journal = in_directory("read-journal");
	char *victim = make_victim("victim of reading");
	sqlite3 *database;
	struct stat status;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		unlink(journal);
		if (i == 1)
			assert_int_equal(symlink(victim, journal), 0);
		else
			plant_journal(path, i ? "" : victim);
		if (i == 2 && geteuid())
			break;
		if (i == 2)
			assert_int_equal(chown(journal, 65533, 65533), 0);
		capture_stderr();
		database = recording_open(path);
		assert_one_line(captured_stderr(), journal, "left alone",
				i == 0 ? "names another file" :
				i == 1 ? "is no regular file" :
					 "another user",
				NULL);
		assert_non_null(database);
		assert_int_equal(number_of(database, "SELECT SUM(calls) FROM call"), 23);
		sqlite3_close(database);
		assert_int_equal(lstat(journal, &status), 0);
		assert_int_equal(access(victim, F_OK), 0);
	}
	g_free(victim);
	g_free(journal);
	g_free(path);
}

/* A directory may be reached by a link (/var/run); the file itself may not be one. */
static void test_linked_directory(void **state)
{
	char *directory = in_directory("real"), *link = in_directory("link to it");
	char *path = g_build_filename(link, "a", NULL),
	     *real = g_build_filename(directory, "a", NULL);
	struct recording *recording;

	(void)state;
	assert_int_equal(mkdir(directory, 0700), 0);
	assert_int_equal(symlink("real", link), 0);
	recording = recording_create(path, false);
	assert_non_null(recording);
	assert_int_equal(recording_slice_begin(recording, 1), 0);
	assert_int_equal(recording_slice_commit(recording, 2), 0);
	assert_int_equal(recording_finish(recording), 0);
	recording_close(recording);
	assert_int_equal(number(real, "SELECT COUNT(*) FROM slice"), 1);
	g_free(real);
	g_free(path);
	g_free(link);
	g_free(directory);
}

/* The writer's death in the middle of a commit: some pages written, the journal still there. */
static void test_hot_journal(void **state)
{
	char *path = finished("hot"), *journal = in_directory("hot-journal");
	char *dead = in_directory("dead"), *dead_journal = in_directory("dead-journal");
	char *before, *after;
	sqlite3 *database = NULL;

	(void)state;
	assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(
			database,
			"PRAGMA cache_size = 1; BEGIN;"
			"WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
			"INSERT INTO fault_run SELECT 1, 1, 1, 'zero', i, 1, 1, 1, 1, 1, '', 1, '' FROM n;"
			"UPDATE call SET calls = 666",
			NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_db_cacheflush(database);
	copy_file(path, dead);
	copy_file(journal, dead_journal);
	sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL);
	sqlite3_close(database);

	/* In a copy: reading writes nothing. */
	before = checksum(dead);
	database = recording_open(dead);
	assert_non_null(database);
	assert_int_equal(sqlite3_db_readonly(database, "main"), 1);
	assert_int_equal(number_of(database, "SELECT SUM(calls) FROM call"), 23);
	assert_int_equal(number_of(database, "SELECT COUNT(*) FROM fault_run"), 0);
	sqlite3_close(database);
	after = checksum(dead);
	assert_string_equal(before, after);
	assert_int_equal(access(dead_journal, F_OK), 0);
	g_free(after);
	g_free(before);
	g_free(dead_journal);
	g_free(dead);
	g_free(journal);
	g_free(path);
}

static char *report_of(const char *path)
{
	const struct report_options options = { .sites = 3 };
	sqlite3 *database = recording_open(path);
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(database);
	assert_int_equal(report_text(database, &options, out), 0);
	fclose(out);
	sqlite3_close(database);
	return text;
}

/* Views are statements of whoever made the file: none is read, and so nothing is done by them. */
static void test_views_of_the_file(void **state)
{
	static const char *const changes[] = {
		"sql || '; RELEASE report; VACUUM INTO ''stolen'''",
		"sql || '; ATTACH ''stolen'' AS a'",
		"'CREATE VIEW ' || name || ' AS SELECT * FROM pragma_journal_mode'",
		"'CREATE VIEW ' || name || ' AS SELECT load_extension(1) AS toll'",
		("'CREATE VIEW ' || name || ' AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
		 " SELECT i + 1 FROM n) SELECT i AS toll FROM n WHERE i < 0'"),
		"'CREATE VIEW ' || name || ' AS SELECT ''mine'' AS sentence, 1 AS position'",
	};
	char *path = finished("of the file"), *before = report_of(path);
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(changes); i++) {
		char *forged = g_strdup_printf("%s %zu", path, i), *after, *sql;

		copy_file(path, forged);
		sql = g_strdup_printf(
			"PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = %s"
			" WHERE type = 'view'",
			changes[i]);
		execute(forged, sql);
		after = report_of(forged);
		assert_string_equal(after, before);
		assert_int_not_equal(access("stolen", F_OK), 0);
		free(after);
		g_free(sql);
		g_free(forged);
	}
	free(before);
	g_free(path);
}

static gpointer ask(gpointer database)
{
	return GINT_TO_POINTER(sqlite3_exec(database, "SELECT * FROM toll", NULL, NULL, NULL));
}

/* Nor does a statement get more done, or work more, than reading takes. */
static void test_guard(void **state)
{
	static const struct {
		const char *sql;
		int status;
	} refused[] = {
		{ "SELECT * FROM main.verdict", SQLITE_ERROR },
		{ "ATTACH 'stolen' AS a", SQLITE_AUTH },
		{ "VACUUM INTO 'stolen'", SQLITE_AUTH },
		{ "PRAGMA journal_mode = MEMORY", SQLITE_AUTH },
		{ "DELETE FROM main.loss", SQLITE_AUTH },
		{ "SELECT load_extension('stolen')", SQLITE_ERROR },
#ifndef __SANITIZE_ADDRESS__ /* SQLite is the same there, and its steps take seconds */
		/* 7^16 rows. */
		{ "WITH n(i) AS (VALUES (0), (1), (2), (3), (4), (5), (6)),"
		  " m(i) AS (SELECT a.i FROM n a, n b, n c, n d)"
		  " SELECT SUM(a.i) FROM m a, m b, m c, m d",
		  SQLITE_INTERRUPT },
#endif
	};
	char *path = finished("guarded");
	sqlite3 *database = recording_open(path);
	GThread *thread;
	size_t i;

	(void)state;
	assert_non_null(database);
	for (i = 0; i < G_N_ELEMENTS(refused); i++) {
		int status = sqlite3_exec(database, refused[i].sql, NULL, NULL, NULL) & 0xff;

		assert_int_equal(status, refused[i].status);
	}
	assert_in_range(sqlite3_hard_heap_limit64(-1), GUARD_HEAP_BYTES, 2 * GUARD_HEAP_BYTES);
#ifndef __SANITIZE_ADDRESS__
	/* All statements together: what that one took others lack, but not the next recording. */
	capture_stderr();
	assert_int_not_equal(report_views_make(database, "toll", 0), 0);
	assert_one_line(captured_stderr(), path, "more work", NULL);
	sqlite3_close(database);
	database = recording_open(path);
#endif
	assert_int_equal(report_views_make(database, "toll", 0), 0);
	assert_int_equal(sqlite3_exec(database, "SELECT * FROM toll", NULL, NULL, NULL), SQLITE_OK);
	/*
	 * What passes between two is no statement's: of another thread's clock, which is far from this
	 * one's, hours.
	 */
	thread = g_thread_new("reader", ask, database);
	assert_int_equal(GPOINTER_TO_INT(g_thread_join(thread)), SQLITE_OK);
	sqlite3_close(database);
	assert_int_not_equal(access("stolen", F_OK), 0);
	g_free(path);
}

/* A hole makes a file as large as one likes, and what may be done for it is no more for that. */
static void test_guard_of_a_hole(void **state)
{
	const uint32_t pages = 1 << 28;
	const uint8_t count[4] = { pages >> 24 }; /* big-endian */
	char *path = finished("hollow");
	int fd = open(path, O_RDWR | O_CLOEXEC);
	sqlite3 *database;

	(void)state;
	assert_int_equal(ftruncate(fd, (off_t)pages * number(path, "PRAGMA page_size")), 0);
	assert_int_equal(pwrite(fd, count, sizeof(count), 28), sizeof(count));
	close(fd);
	database = recording_open(path);
	assert_non_null(database);
	assert_in_range(sqlite3_hard_heap_limit64(-1), GUARD_HEAP_BYTES, 2 * GUARD_HEAP_BYTES - 1);
	sqlite3_close(database);
	g_free(path);
}

static uint64_t own_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int count_step(void *steps)
{
	++*(int64_t *)steps;
	return 0;
}

/* The schema may become larger still, and be read on a slower machine. */
static void test_room_for_the_schema(void **state)
{
	char *path = finished("roomy");
	sqlite3 *database = NULL;
	int64_t steps = 0;
	uint64_t begun_ns;

	(void)state;
	assert_int_equal(sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	sqlite3_progress_handler(database, 1, count_step, &steps);
	begun_ns = own_time_ns();
	assert_int_equal(sqlite3_exec(database, "SELECT 1 FROM pragma_page_count()", NULL, NULL,
				      NULL),
			 SQLITE_OK);
	assert_in_range(own_time_ns() - begun_ns, 1, GUARD_STEPS_OPEN * GUARD_STEP_NS / 2);
	assert_in_range(steps * GUARD_OPEN_WEIGHT, 1, GUARD_STEPS_OPEN / 4);
	sqlite3_close(database);
	g_free(path);
}

/* What no tracer writes ends reading with a line, and no SQL of the file's is run. */
static void test_more_than_a_recording_has(void **state)
{
	static const struct {
		const char *sql, *said;
	} made[] = {
		{ "PRAGMA writable_schema = ON;"
		  "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20011)"
		  " INSERT INTO sqlite_master SELECT 'view', 'v' || i, 'v' || i, 0, 'CREATE VIEW v'"
		  " || i || ' AS SELECT ' || replace(hex(zeroblob(99)), '0', '1, ') || '1' FROM n",
		  "its schema is larger" },
		{ "UPDATE call SET call = hex(zeroblob(3000000))", "too big" },
		/* It would be too big, were it asked by the check of the whole file. */
		{ "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql,"
		  " ') WITHOUT', ', CHECK (zeroblob(50000000) NOTNULL)) WITHOUT') WHERE name = 'meta'",
		  NULL },
	};
	char *path = finished("plain");
	sqlite3 *database;
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(made); i++) {
		char *large = g_strdup_printf("%s %zu", path, i), *said;

		copy_file(path, large);
		execute(large, made[i].sql);
		capture_stderr();
		database = recording_open(large);
		if (database)
			report_views_make(database, "toll", 0);
		said = captured_stderr();
		if (made[i].said) {
			assert_one_line(said, large, made[i].said, NULL);
		} else {
			assert_string_equal(said, "");
			g_free(said);
		}
		sqlite3_close(database);
		g_free(large);
	}
	g_free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_planted_while_written),
		cmocka_unit_test(test_planted_while_read),
		cmocka_unit_test(test_linked_directory),
		cmocka_unit_test(test_views_of_the_file),
		cmocka_unit_test(test_guard),
		cmocka_unit_test(test_guard_of_a_hole),
		cmocka_unit_test(test_room_for_the_schema),
		cmocka_unit_test(test_more_than_a_recording_has),
		cmocka_unit_test(test_hot_journal),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
