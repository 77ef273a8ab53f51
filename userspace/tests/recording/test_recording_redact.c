// SPDX-License-Identifier: GPL-2.0
/*
 * test_recording_redact.c: a recording that is redacted before it is written. The witnesses are the
 * bytes of its file, and what the kernel says that this process has written in all.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <glib.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording/recording.h"
#include "recording/recording_redact.h"
#include "recordings.h"
#include "said.h"

/* proc(5): all that this process has handed to write(2) and its like, wherever it went. */
static uint64_t written_bytes(void)
{
	g_autofree char *text = NULL;
	const char *found;

	assert_true(g_file_get_contents("/proc/self/io", &text, NULL, NULL));
	found = strstr(text, "wchar: ");
	assert_non_null(found);
	return g_ascii_strtoull(found + strlen("wchar: "), NULL, 10);
}

static bool contains(const char *path, const char *what)
{
	g_autofree char *contents = NULL;
	gsize length = 0;

	assert_true(g_file_get_contents(path, &contents, &length, NULL));
	return memmem(contents, length, what, strlen(what));
}

/* Far more than SQLite keeps in memory of a database that is on disk. */
#define SECRETS 30011

static struct recording *with_secrets(const char *path, bool force, bool redacted)
{
	struct recording *recording =
		redacted ? recording_create_redacted(path, force) : recording_create(path, force);
	pid_t pid;

	assert_non_null(recording);
	assert_int_equal(recording_slice_begin(recording, 1), 0);
	for (pid = 42; pid < 42 + SECRETS; pid++) {
		g_autofree char *name = g_strdup_printf(
			"secret, and of some length, so that it fills pages %d", pid);

		add_process(recording, pid, name);
	}
	add_call(recording, 5, 23);
	assert_int_equal(recording_slice_commit(recording, 2), 0);
	return recording;
}

static void test_redacted(void **state)
{
	char *plain = in_directory("plain"), *path = in_directory("redacted");
	struct recording *recording = with_secrets(plain, false, false);
	uint64_t before, written;
	struct stat status;

	(void)state;
	assert_int_equal(recording_finish(recording), 0);
	recording_close(recording);
	assert_true(contains(plain, "secret"));

	before = written_bytes();
	recording = with_secrets(path, false, true);
	assert_int_equal(written_bytes(), before);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_size, 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_int_equal(recording_finish(recording), 0);
	written = written_bytes() - before;
	recording_close(recording);
	assert_int_equal(stat(path, &status), 0);
	assert_true(status.st_size > SECRETS * 32);
	/* The file, and hardly more: nothing went anywhere else. */
	assert_in_range(written, status.st_size, status.st_size + status.st_size / 8);
	assert_false(contains(path, "secret"));
	assert_int_equal(number(path, "SELECT COUNT(DISTINCT comm) FROM process"
				      " WHERE comm GLOB 'program-[0-9]*'"),
			 SECRETS);
	assert_int_equal(number(path, "SELECT SUM(calls) FROM call"), 23);
	assert_int_equal(number(path, "SELECT value = '1' FROM meta WHERE key = 'redacted'"), 1);
	assert_int_equal(number(path, "SELECT value = '1' FROM meta WHERE key = 'complete'"), 1);
	assert_int_equal(number(path, "PRAGMA application_id"), 0x6d746f6c);
	assert_int_equal(number(path, "PRAGMA user_version"), RECORDING_FORMAT);
	g_free(plain);
	g_free(path);
}

static void test_redacted_unfinished(void **state)
{
	char *fresh = in_directory("fresh redacted"), *old = finished("old redacted"), *beside;
	struct recording *recording;
	struct rlimit before, few;

	(void)state;
	recording_close(with_secrets(fresh, false, true));
	assert_int_not_equal(access(fresh, F_OK), 0);

	beside = g_strdup_printf("%s.tmp-%d", old, (int)getpid());
	recording = with_secrets(old, true, true);
	assert_int_equal(access(beside, F_OK), 0);
	recording_close(recording);
	assert_int_not_equal(access(beside, F_OK), 0);
	assert_int_equal(number(old, "SELECT SUM(calls) FROM call"), 23);

	/* What could not be written whole is gone, too. */
	recording = with_secrets(fresh, false, true);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	few = before;
	few.rlim_cur = 65536;
	signal(SIGXFSZ, SIG_IGN);
	capture_stderr();
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	assert_int_not_equal(recording_finish(recording), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	recording_close(recording);
	assert_one_line(captured_stderr(), fresh, "File too large", "nothing is written", NULL);
	assert_int_not_equal(access(fresh, F_OK), 0);
	g_free(beside);
	g_free(fresh);
	g_free(old);
}

static void add_allocator(struct recording *recording, unsigned int number)
{
	g_autofree char *module = g_strdup_printf("/secret/%u/libsome.so", number);

	assert_int_equal(recording_allocator(recording,
					     &(struct allocator_fact){ .pid = 42,
								       .module = module,
								       .kind = "unknown",
								       .version = "",
								       .functions = "",
								       .refused = "",
								       .tunables = "",
								       .linkage = "shared" }),
			 0);
}

/* Whoever redacts what is redacted already gets the same again: names that are keys do not meet. */
static void test_redacted_again(void **state)
{
	char *path = in_directory("again");
	struct recording *recording = recording_create_redacted(path, false);
	sqlite3 *database, *again;
	unsigned int i;

	(void)state;
	assert_non_null(recording);
	add_process(recording, 42, "secret");
	assert_int_equal(recording_slice_begin(recording, 1), 0);
	for (i = 0; i < 23; i++)
		add_allocator(recording, i);
	assert_int_equal(recording_slice_commit(recording, 2), 0);
	assert_int_equal(recording_finish(recording), 0);
	recording_close(recording);
	assert_false(contains(path, "secret"));
	database = recording_open(path);
	assert_non_null(database);
	again = recording_redacted(database);
	assert_non_null(again);
	assert_int_equal(number_of(again, "SELECT COUNT(DISTINCT module) FROM allocator"
					  " WHERE module GLOB '/file-*.so'"),
			 23);
	assert_int_equal(number_of(again, "SELECT COUNT(*) FROM process"
					  " WHERE comm = 'program-1'"),
			 1);
	sqlite3_close(again);
	sqlite3_close(database);
	g_free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_redacted),
		cmocka_unit_test(test_redacted_unfinished),
		cmocka_unit_test(test_redacted_again),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
