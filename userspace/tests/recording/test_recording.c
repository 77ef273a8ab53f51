// SPDX-License-Identifier: GPL-2.0
/*
 * test_recording.c: the life of recordings: written, interrupted, opened. The witness of what is in
 * a file is a connection of its own; the witness of what is said is stderr.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/wire/losses.h"
#include "recording/recording.h"
#include "recordings.h"
#include "report/report.h"
#include "said.h"

static bool losses_exceed(struct recording *recording)
{
	char *which = NULL;
	bool exceed = report_losses_exceed(recording_database(recording), &which);

	assert_int_equal(exceed, which != NULL);
	g_free(which);
	return exceed;
}

static void test_file(void **state)
{
	char *path = finished("a");
	struct stat status;

	(void)state;
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_int_equal(number(path, "PRAGMA application_id"), 0x6d746f6c);
	assert_int_equal(number(path, "PRAGMA user_version"), RECORDING_FORMAT);
	assert_int_equal(number(path, "PRAGMA page_size"), 4096);
	assert_int_equal(number(path, "SELECT value = '1' FROM meta WHERE key = 'complete'"), 1);
	assert_int_equal(number(path, "SELECT value = '1' FROM meta WHERE key = 'format'"), 1);
	assert_int_equal(number(path, "SELECT start_ns = 100 AND end_ns = 200 FROM slice"), 1);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM loss_kind"), MEMTOLL_LOSS_COUNT);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM loss_kind WHERE name = 'ring_block'"
				      " AND meaning <> '' AND remedy <> ''"),
			 1);
	g_free(path);
}

static void test_in_memory(void **state)
{
	const struct report_options options = { .sites = 3 };
	struct recording *recording = recording_create(NULL, false);
	char *text = NULL;
	size_t size = 0;
	FILE *out;

	(void)state;
	assert_non_null(recording);
	assert_int_equal(recording_slice_begin(recording, 1), 0);
	add_process(recording, 42, "program");
	add_call(recording, 5, 23);
	assert_int_equal(add_counters(recording, 1000000, 0, 0), 0);
	assert_int_equal(recording_slice_commit(recording, 2), 0);
	/* Twice: a live display asks again; and writing goes on in between. */
	out = open_memstream(&text, &size);
	assert_int_equal(report_text(recording_database(recording), &options, out), 0);
	assert_int_equal(recording_slice_begin(recording, 3), 0);
	add_call(recording, 5, 23);
	assert_int_equal(recording_slice_commit(recording, 4), 0);
	assert_int_equal(recording_finish(recording), 0);
	assert_int_equal(report_json(recording_database(recording), &options, out), 0);
	fclose(out);
	assert_non_null(strstr(text, "VERDICT"));
	assert_non_null(strstr(text, "\"calls\":{\"calloc\":46}"));
	assert_false(losses_exceed(recording));
	recording_close(recording);
	free(text);
}

static void test_losses_exceed(void **state)
{
	struct recording *recording = recording_create(NULL, false);

	(void)state;
	assert_non_null(recording);
	assert_int_equal(recording_slice_begin(recording, 1), 0);
	add_call(recording, 5, 1000);
	assert_int_equal(recording_loss(recording, "runs_unstored", 1000000), 0);
	assert_int_equal(recording_loss(recording, "calls_full", 10), 0);
	assert_false(losses_exceed(recording));
	assert_int_equal(recording_loss(recording, "calls_full", 1), 0);
	assert_true(losses_exceed(recording));
	recording_close(recording);
}

static void test_existing_file(void **state)
{
	char *path = finished("existing");
	struct recording *recording;

	(void)state;
	capture_stderr();
	assert_null(recording_create(path, false));
	assert_one_line(captured_stderr(), path, "exists", "--force", "-o", NULL);
	assert_int_equal(number(path, "SELECT SUM(calls) FROM call"), 23);

	/* Until it is finished, the old one is what lies there. */
	recording = recording_create(path, true);
	assert_non_null(recording);
	assert_int_equal(recording_slice_begin(recording, 1), 0);
	add_call(recording, 5, 29);
	assert_int_equal(recording_slice_commit(recording, 2), 0);
	assert_int_equal(number(path, "SELECT SUM(calls) FROM call"), 23);
	assert_int_equal(recording_finish(recording), 0);
	recording_close(recording);
	assert_int_equal(number(path, "SELECT SUM(calls) FROM call"), 29);
	g_free(path);
}

static void test_unfinished(void **state)
{
	char *path = finished("unfinished"), *beside, *fresh = in_directory("fresh");
	struct recording *recording;

	(void)state;
	/* Replacing: the old file stays, the new one is named. */
	recording = recording_create(path, true);
	assert_non_null(recording);
	assert_int_equal(recording_slice_begin(recording, 1), 0);
	add_call(recording, 5, 29);
	assert_int_equal(recording_slice_commit(recording, 2), 0);
	beside = g_strdup_printf("%s.tmp-%d", path, (int)getpid());
	capture_stderr();
	recording_close(recording);
	assert_one_line(captured_stderr(), path, beside, NULL);
	assert_int_equal(number(path, "SELECT SUM(calls) FROM call"), 23);
	assert_int_equal(number(beside, "SELECT SUM(calls) FROM call"), 29);
	assert_int_equal(number(beside, "SELECT COUNT(*) FROM meta WHERE key = 'complete'"), 0);

	/* New, with a slice: it stays. Without any: there is nothing to keep. */
	recording = recording_create(fresh, false);
	assert_non_null(recording);
	recording_close(recording);
	assert_int_not_equal(access(fresh, F_OK), 0);
	recording = recording_create(fresh, false);
	assert_non_null(recording);
	assert_int_equal(recording_slice_begin(recording, 1), 0);
	assert_int_equal(recording_slice_commit(recording, 2), 0);
	recording_close(recording);
	assert_int_equal(number(fresh, "SELECT COUNT(*) FROM slice"), 1);
	g_free(fresh);
	g_free(beside);
	g_free(path);
}

static void test_refused_paths(void **state)
{
	char *target = in_directory("target"), *link = in_directory("link");
	char *pipe_path = in_directory("pipe"), *missing = in_directory("no/where");
	char *journal = in_directory("left-journal"), *left = in_directory("left");
	int forced;

	(void)state;
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(mkfifo(pipe_path, 0600), 0);
	assert_true(g_file_set_contents(journal, "x", 1, NULL));
	for (forced = 0; forced < 2; forced++) {
		capture_stderr();
		assert_null(recording_create(link, forced));
		assert_one_line(captured_stderr(), link, "symbolic link", NULL);
		capture_stderr();
		assert_null(recording_create(directory, forced));
		assert_one_line(captured_stderr(), directory, "is a directory", NULL);
		capture_stderr();
		assert_null(recording_create(pipe_path, forced));
		assert_one_line(captured_stderr(), pipe_path, "not a regular file", NULL);
		capture_stderr();
		assert_null(recording_create(missing, forced));
		assert_one_line(captured_stderr(), missing, "does not exist", NULL);
		capture_stderr();
		assert_null(recording_create(left, forced));
		assert_one_line(captured_stderr(), journal, "in the way", NULL);
		/* sysfs takes no files, from root neither. */
		capture_stderr();
		assert_null(recording_create("/sys/memtoll-test", forced));
		assert_one_line(captured_stderr(), "/sys", "cannot write", NULL);
	}
	assert_int_not_equal(access(target, F_OK), 0);
	assert_int_not_equal(access(left, F_OK), 0);
	g_free(left);
	g_free(journal);
	g_free(missing);
	g_free(pipe_path);
	g_free(link);
	g_free(target);
}

static void test_owner_behind_sudo(void **state)
{
	struct stat status;
	char *path;

	(void)state;
	setenv("SUDO_UID", "65533", 1);
	setenv("SUDO_GID", "65532", 1);
	path = finished("owned");
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	assert_int_equal(stat(path, &status), 0);
	/* Only root can give a file away; anyone else's stays their own. */
	assert_int_equal(status.st_uid, geteuid() ? geteuid() : 65533);
	assert_int_equal(status.st_gid, geteuid() ? getegid() : 65532);
	g_free(path);
}

/* What is no number gives the file to nobody. */
static void test_bad_owner_behind_sudo(void **state)
{
	static const char *const texts[] = { "", "x", "-1", "99999999999999999999", "12x" };
	struct stat status;
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(texts); i++) {
		g_autofree char *name = g_strdup_printf("not owned %zu", i), *path = NULL;

		setenv("SUDO_UID", texts[i], 1);
		setenv("SUDO_GID", texts[i], 1);
		path = finished(name);
		unsetenv("SUDO_UID");
		unsetenv("SUDO_GID");
		assert_int_equal(stat(path, &status), 0);
		assert_int_equal(status.st_uid, geteuid());
		assert_int_equal(status.st_gid, getegid());
	}
}

/* Write slices until one fails. What was said and what is in the file must agree. */
static void fill_up(const char *path, const char *reason, int error)
{
	struct recording *recording = recording_create(path, false);
	struct fault_run_fact run = { .pid = 42, .fault_class = "zero" };
	int err = 0, again, finish, i;
	char *slices, *said;

	assert_non_null(recording);
	capture_stderr();
	for (i = 0; i < 100 && !err; i++) {
		err = recording_slice_begin(recording, 1);
		for (run.address = 0; run.address < 500 && !err; run.address++)
			err = recording_fault_run(recording, &run);
		if (!err)
			err = recording_slice_commit(recording, 2);
	}
	/* And it stays so. */
	again = recording_slice_begin(recording, 3);
	finish = recording_finish(recording);
	recording_close(recording);
	said = captured_stderr();
	assert_int_equal(err, error);
	assert_int_equal(again, error);
	assert_int_equal(finish, error);
	slices = g_strdup_printf("recorded up to slice %d", i - 1);
	assert_one_line(said, path, reason, slices, NULL);
	assert_in_range(i, 2, 99);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM slice"), i - 1);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM fault_run"), (i - 1) * 500);
	assert_int_equal(number(path, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"),
			 1);
	g_free(slices);
}

static void test_file_size_limit(void **state)
{
	const struct rlimit limit = { .rlim_cur = 1 << 20, .rlim_max = RLIM_INFINITY };
	char *path = in_directory("limited");
	struct rlimit before;

	(void)state;
	getrlimit(RLIMIT_FSIZE, &before);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	fill_up(path, "File too large", -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	g_free(path);
}

static uint64_t file_size(const char *path)
{
	struct stat status;

	return stat(path, &status) ? 0 : (uint64_t)status.st_size;
}

/*
 * Never larger than its limit, its journal with it, after any row; and what is in it by then are
 * whole slices, with the reason of its end.
 */
static void test_limit(void **state)
{
	const uint64_t limit = 3 << 20;
	char *path = in_directory("limit"), *journal = g_strconcat(path, "-journal", NULL);
	struct fault_run_fact run = { .pid = 42,
				      .fault_class = "zero",
				      .allocated_call = "calloc" };
	struct recording *recording = recording_create(path, false);
	uint64_t most = 0, with_journal = 0, salt = 1, size;
	int err = 0, slices = 0, i;
	char *said;

	(void)state;
	assert_non_null(recording);
	recording_limit(recording, limit);
	assert_false(recording_is_full(recording));
	capture_stderr();
	while (!err && slices < 100) {
		err = recording_slice_begin(recording, 100 * slices);
		/* At both ends of tables and all over them: a journal of any size. */
		for (i = 0; i < 1009 && !err; i++) {
			run.address = i;
			salt = salt * 6364136223846793005ULL + 1442695040888963407ULL;
			err = recording_fault_run(recording, &run);
			if (!err)
				err = recording_stack(recording, salt, 42, "cfi", true, "");
			size = file_size(path) + file_size(journal);
			most = MAX(most, size);
			with_journal = MAX(with_journal, file_size(journal));
		}
		if (!err)
			err = recording_slice_commit(recording, 100 * slices + 99);
		slices += !err;
	}
	assert_int_equal(err, -EFBIG);
	assert_true(recording_is_full(recording));
	assert_int_equal(recording_slice_begin(recording, 1), -EFBIG);
	assert_int_equal(recording_resume_full(recording), 100 * slices - 1);
	assert_int_equal(recording_meta(recording, "end_reason", "size limit"), 0);
	assert_int_equal(recording_finish(recording), 0);
	most = MAX(most, file_size(path));
	recording_close(recording);
	said = captured_stderr();
	assert_one_line(said, path, "3145728", "--max-size", NULL);
	assert_in_range(slices, 5, 99);
	assert_true(most <= limit);
	/* The test is of a journal that counts. */
	assert_true(with_journal > limit / 16);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM slice"), slices);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM fault_run"), slices * 1009);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM stack"), slices * 1009);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM meta WHERE value = 'size limit'"), 1);
	assert_int_equal(number(path, "SELECT value FROM meta WHERE key = 'complete'"), 1);
	assert_int_equal(number(path, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"),
			 1);
	assert_int_equal(file_size(journal), 0);
	g_free(journal);
	g_free(path);
}

/* A single long text. And a recording in memory is no exception. */
static void test_limit_of_a_row(void **state)
{
	char *path = in_directory("limit-text"), *text = g_strnfill(4 << 20, 'x');
	char *paths[] = { path, NULL };
	struct recording *recording;
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(paths); i++) {
		recording = recording_create(paths[i], false);
		assert_non_null(recording);
		recording_limit(recording, 2 << 20);
		assert_int_equal(recording_slice_begin(recording, 1), 0);
		assert_int_equal(recording_slice_commit(recording, 2), 0);
		capture_stderr();
		assert_int_equal(recording_meta(recording, "command_line", text), -EFBIG);
		assert_one_line(captured_stderr(), "--max-size", "slice 1", NULL);
		assert_int_equal(recording_resume_full(recording), 2);
		assert_int_equal(recording_finish(recording), 0);
		assert_int_equal(number_of(recording_database(recording),
					   "SELECT COUNT(*) FROM meta WHERE key = 'command_line'"),
				 0);
		recording_close(recording);
	}
	assert_true(file_size(path) < 2 << 20);
	g_free(text);
	g_free(path);
}

/* Nothing is left of one that is too small for anything. */
static void test_limit_too_small(void **state)
{
	char *path = in_directory("limit-small"), *text = g_strnfill(1 << 20, 'x');
	struct recording *recording = recording_create(path, false);

	(void)state;
	assert_non_null(recording);
	recording_limit(recording, RECORDING_LIMIT_MIN);
	capture_stderr();
	assert_int_equal(recording_meta(recording, "command_line", text), -EFBIG);
	assert_one_line(captured_stderr(), path, "too small", "nothing was recorded", NULL);
	assert_int_equal(recording_resume_full(recording), 0);
	recording_close(recording);
	assert_int_not_equal(access(path, F_OK), 0);
	g_free(text);
	g_free(path);
}

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool well = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return well;
}

/*
 * A mount namespace of our own; without root in a user namespace that knows this user, or no file
 * could be made there.
 */
static bool own_mounts(void)
{
	unsigned int uid = geteuid(), gid = getegid();
	char map[64];
	bool well;

	if (!unshare(CLONE_NEWNS))
		return true;
	well = !unshare(CLONE_NEWUSER | CLONE_NEWNS);
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	well = well && write_text("/proc/self/setgroups", "deny") &&
	       write_text("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	return well && write_text("/proc/self/gid_map", map);
}

/* In a mount namespace of its own, so that a small disk can be had. */
static void test_full_disk(void **state)
{
	char *disk = in_directory("disk"), *path = g_build_filename(disk, "full", NULL);
	int status = -1;
	pid_t pid;

	(void)state;
	assert_int_equal(mkdir(disk, 0700), 0);
	pid = fork();
	if (!pid) {
		if (!own_mounts())
			_exit(77);
		if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("none", disk, "tmpfs", 0, "size=1m"))
			_exit(77);
		fill_up(path, "no space left on device", -ENOSPC);
		umount(disk);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	g_rmdir(disk);
	g_free(path);
	g_free(disk);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip(); /* no namespaces for this user; the limit above does the same */
	assert_int_equal(status, 0);
}

static void test_open(void **state)
{
	char *path = finished("good");
	sqlite3 *database = recording_open(path);

	(void)state;
	assert_non_null(database);
	assert_int_equal(sqlite3_db_readonly(database, "main"), 1);
	assert_int_not_equal(sqlite3_exec(database, "DELETE FROM call", NULL, NULL, NULL),
			     SQLITE_OK);
	sqlite3_close(database);
	g_free(path);
}

/* SQLite takes "file:..." for an URI; we take it for a name. */
static void test_odd_name(void **state)
{
	char *before = g_get_current_dir();
	struct recording *recording;
	sqlite3 *database;

	(void)state;
	assert_int_equal(chdir(directory), 0);
	recording = recording_create("file:odd?mode=memory", false);
	assert_non_null(recording);
	assert_int_equal(recording_slice_begin(recording, 1), 0);
	assert_int_equal(recording_slice_commit(recording, 2), 0);
	assert_int_equal(recording_finish(recording), 0);
	recording_close(recording);
	assert_int_equal(access("file:odd?mode=memory", R_OK), 0);
	database = recording_open("file:odd?mode=memory");
	assert_non_null(database);
	sqlite3_close(database);
	assert_int_equal(chdir(before), 0);
	g_free(before);
}

static void refuse(const char *path, const char *reason, const char *detail)
{
	capture_stderr();
	assert_null(recording_open(path));
	assert_one_line(captured_stderr(), path, reason, detail, NULL);
}

static void test_open_refused(void **state)
{
	char *path = in_directory("none");
	struct stat status;
	sqlite3 *database = NULL;

	(void)state;
	refuse(path, "No such file", NULL);
	refuse(directory, "is a directory", NULL);
	refuse("/dev/null", "no regular file", NULL);
	assert_true(g_file_set_contents(path, "", 0, NULL));
	refuse(path, "is empty", NULL);
	assert_true(g_file_set_contents(path, "SQLite forma", -1, NULL));
	refuse(path, "not a recording", NULL);
	assert_true(g_file_set_contents(path, "a,b\n1,2\n", -1, NULL));
	refuse(path, "not a recording", NULL);
	g_remove(path);
	assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
	sqlite3_exec(database, "CREATE TABLE x (y)", NULL, NULL, NULL);
	sqlite3_close(database);
	refuse(path, "SQLite database, but not a recording", NULL);
	g_free(path);

	path = finished("newer");
	execute(path, "PRAGMA user_version = 7");
	refuse(path, "format 7", "up to format 1");
	g_free(path);

	path = finished("tableless");
	execute(path, "DROP TABLE loss");
	refuse(path, "lacks", ": loss");
	g_free(path);

	path = finished("cut");
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(truncate(path, status.st_size / 2), 0);
	refuse(path, "truncated", NULL);
	assert_int_equal(truncate(path, 50), 0);
	refuse(path, "truncated", NULL);
	g_free(path);
}

/* Overwritten in the middle, at many places: refused or read, never a crash. */
static void test_open_damaged(void **state)
{
	char *path = finished("damaged"), *copy = in_directory("copy"), *contents = NULL;
	sqlite3 *database;
	int refused = 0;
	gsize length, at;

	(void)state;
	assert_true(g_file_get_contents(path, &contents, &length, NULL));
	for (at = 100; at + 64 < length; at += 37997) {
		char saved[64];

		memcpy(saved, contents + at, sizeof(saved));
		memset(contents + at, 0xa5, sizeof(saved));
		assert_true(g_file_set_contents(copy, contents, (gssize)length, NULL));
		memcpy(contents + at, saved, sizeof(saved));
		capture_stderr();
		database = recording_open(copy);
		g_free(captured_stderr());
		refused += !database;
		sqlite3_close(database);
	}
	assert_true(refused > 0);
	g_free(contents);
	g_free(copy);
	g_free(path);
}

static void test_open_while_written(void **state)
{
	char *path = in_directory("live");
	struct recording *recording = recording_create(path, false);
	const struct report_options options = { .sites = 3 };
	sqlite3 *database;
	char *text = NULL;
	size_t size = 0;
	FILE *out;

	(void)state;
	assert_non_null(recording);
	assert_int_equal(recording_slice_begin(recording, 1), 0);
	add_call(recording, 5, 23);
	assert_int_equal(recording_slice_commit(recording, 2), 0);
	assert_int_equal(recording_slice_begin(recording, 2), 0);
	add_call(recording, 5, 29);
	database = recording_open(path);
	assert_non_null(database);
	out = open_memstream(&text, &size);
	assert_int_equal(report_json(database, &options, out), 0);
	assert_int_equal(report_text(database, &options, out), 0);
	fclose(out);
	assert_non_null(strstr(text, "\"calls\":{\"calloc\":23}"));
	assert_non_null(strstr(text, "\"complete\":false"));
	assert_non_null(strstr(text, "!!! INCOMPLETE"));
	/* The reader, still open, holds no lock that stops the writer. */
	assert_int_equal(recording_slice_commit(recording, 3), 0);
	assert_int_equal(recording_finish(recording), 0);
	sqlite3_close(database);
	recording_close(recording);
	free(text);
	g_free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_in_memory),
		cmocka_unit_test(test_losses_exceed),
		cmocka_unit_test(test_existing_file),
		cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_refused_paths),
		cmocka_unit_test(test_owner_behind_sudo),
		cmocka_unit_test(test_bad_owner_behind_sudo),
		cmocka_unit_test(test_file_size_limit),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_limit_of_a_row),
		cmocka_unit_test(test_limit_too_small),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_odd_name),
		cmocka_unit_test(test_open_refused),
		cmocka_unit_test(test_open_damaged),
		cmocka_unit_test(test_open_while_written),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
