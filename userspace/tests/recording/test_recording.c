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
#include "recording/recording_guard.h"
#include "recordings.h"
#include "report/report.h"
#include "report/report_views.h"

/* stderr goes to a file between these two; the second gives what came. */
static int saved_stderr = -1;
static FILE *captured;

static void capture_stderr(void)
{
	captured = tmpfile();
	assert_non_null(captured);
	fflush(stderr);
	saved_stderr = dup(STDERR_FILENO);
	dup2(fileno(captured), STDERR_FILENO);
}

static char *captured_stderr(void)
{
	char text[4096];
	size_t length;

	fflush(stderr);
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	rewind(captured);
	length = fread(text, 1, sizeof(text) - 1, captured);
	text[length] = '\0';
	fclose(captured);
	return g_strdup(text);
}

/* One line, of the tool, that holds each of the words (NULL-terminated). */
static void assert_one_line(char *text, ...)
{
	const char *word;
	va_list words;

	assert_true(g_str_has_prefix(text, "memtoll: "));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	va_start(words, text);
	while ((word = va_arg(words, const char *)))
		if (!strstr(text, word))
			fail_msg("'%s' is not in: %s", word, text);
	va_end(words);
	g_free(text);
}

static void execute(const char *path, const char *sql)
{
	sqlite3 *database = NULL;

	assert_int_equal(sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(database);
}

/* A finished recording of one slice with 23 calls. */
static char *finished(const char *name)
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
		cmocka_unit_test(test_planted_while_written),
		cmocka_unit_test(test_planted_while_read),
		cmocka_unit_test(test_linked_directory),
		cmocka_unit_test(test_views_of_the_file),
		cmocka_unit_test(test_guard),
		cmocka_unit_test(test_guard_of_a_hole),
		cmocka_unit_test(test_room_for_the_schema),
		cmocka_unit_test(test_more_than_a_recording_has),
		cmocka_unit_test(test_hot_journal),
		cmocka_unit_test(test_open_while_written),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
