// SPDX-License-Identifier: GPL-2.0
/* test_keep.c: the bound on the disk takes the oldest of its own recordings, and nobody else's files. */
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording/recording.h"
#include "watch/keep.h"
#include "watch/part_file.h"

#define KIB 1024
#define SIZE (64 * KIB)

static const char first[] = "watch-20261127T040034.005Z.memtoll";
static const char second[] = "watch-20261127T040042.415Z-detail.memtoll";
static const char third[] = "watch-20261128T000000.000Z.memtoll";

static char *directory;
static struct keep *keep;
static time_t set_back_s;

/* Instead of libc's. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int err = (int)syscall(SYS_clock_gettime, clock, now);

	if (!err && clock == CLOCK_REALTIME)
		now->tv_sec -= set_back_s;
	return err;
}

static int make_directory(void **state)
{
	(void)state;
	keep = keep_new();
	directory = g_dir_make_tmp("memtoll-keep-XXXXXX", NULL);
	return directory ? 0 : -1;
}

static int remove_directory(void **state)
{
	GDir *entries = g_dir_open(directory, 0, NULL);
	const char *name;

	(void)state;
	while ((name = g_dir_read_name(entries))) {
		g_autofree char *path = g_build_filename(directory, name, NULL);

		unlink(path);
	}
	g_dir_close(entries);
	rmdir(directory);
	g_free(directory);
	keep_free(keep);
	return 0;
}

static char *path_of(const char *name)
{
	return g_build_filename(directory, name, NULL);
}

static bool is_there(const char *name)
{
	g_autofree char *path = path_of(name);

	return !access(path, F_OK);
}

static void make_file(const char *name, uint32_t mark)
{
	g_autofree char *path = path_of(name), *bytes = g_malloc0(SIZE);

	mark = GUINT32_TO_BE(mark);
	memcpy(bytes + 68, &mark, sizeof(mark));
	memset(bytes + 4096, 'x', SIZE - 4096);
	assert_true(g_file_set_contents(path, bytes, SIZE, NULL));
}

static void make_recording(const char *name)
{
	make_file(name, RECORDING_APPLICATION_ID);
}

static void test_names(void **state)
{
	g_autofree char *ordinary = keep_name(keep, false), *detailed = keep_name(keep, true);

	(void)state;
	assert_true(keep_is_name(ordinary));
	assert_true(keep_is_name(detailed));
	assert_true(keep_is_name(second));
	assert_false(keep_is_name("watch-20261127T040034.005Z.memtoll.old"));
	assert_false(keep_is_name("watch-20261127T040034.005Z.memtoll\n"));
	assert_false(keep_is_name("my-watch-20261127T040034.005Z.memtoll"));
	assert_false(keep_is_name("server.memtoll"));
	/* Later ones are greater, of whatever kind. */
	assert_true(strcmp(first, second) < 0 && strcmp(second, third) < 0);
}

static void test_oldest_go_first(void **state)
{
	struct kept kept;

	(void)state;
	make_recording(third);
	make_recording(first);
	make_recording(second);
	kept = keep_within(keep, directory, 3 * SIZE);
	assert_int_equal(kept.files, 3);
	assert_int_equal(kept.removed, 0);
	assert_int_equal(kept.bytes, 3 * SIZE);
	kept = keep_within(keep, directory, 3 * SIZE - 1);
	assert_int_equal(kept.files, 2);
	assert_int_equal(kept.removed, 1);
	assert_false(is_there(first));
	kept = keep_within(keep, directory, SIZE);
	assert_true(is_there(third) && !is_there(second));
	assert_int_equal(kept.bytes, SIZE);
}

/* What this watch makes is younger than all that it has found, and in the order of its making. */
static void test_clock_that_is_set_back(void **state)
{
	static const char old[] = "watch-20000101T000000.000Z.memtoll";
	static const char ahead[] = "watch-99991231T235959.999Z.memtoll";
	g_autofree char *own = keep_name(keep, false), *later = NULL;

	(void)state;
	set_back_s = 3600;
	later = keep_name(keep, false);
	set_back_s = 0;
	make_recording(own);
	make_recording(later);
	make_recording(ahead);
	make_recording(old);
	assert_true(strcmp(later, own) < 0);
	assert_int_equal(keep_within(keep, directory, 3 * SIZE).removed, 1);
	assert_false(is_there(ahead));
	assert_int_equal(keep_within(keep, directory, 2 * SIZE).removed, 1);
	assert_false(is_there(old));
	assert_int_equal(keep_within(keep, directory, SIZE).removed, 1);
	assert_true(is_there(later) && !is_there(own));
}

/* Neither of another name, nor of other content, nor a link, nor what has a second name. */
static void test_files_of_others_stay(void **state)
{
	static const char linked[] = "watch-20251127T040034.005Z.memtoll";
	static const char twice[] = "watch-20241127T040034.005Z.memtoll";
	static const char content[] = "watch-20231127T040034.005Z.memtoll";
	g_autofree char *mine = path_of("mine.memtoll"), *link = path_of(linked);
	g_autofree char *second_name = path_of(twice), *other = path_of("other.memtoll");
	struct kept kept;

	(void)state;
	make_recording("mine.memtoll");
	make_recording("other.memtoll");
	make_file(content, 0x12345678);
	assert_int_equal(symlink(mine, link), 0);
	assert_int_equal(linkat(AT_FDCWD, other, AT_FDCWD, second_name, 0), 0);
	make_recording(first);
	kept = keep_within(keep, directory, 0);
	assert_int_equal(kept.removed, 1);
	assert_int_equal(kept.files, 0);
	assert_false(is_there(first));
	assert_true(is_there("mine.memtoll") && is_there("other.memtoll") && is_there(content));
	assert_true(is_there(linked) && is_there(twice));
}

/* What is written now counts, but is not removed. */
static void test_unfinished(void **state)
{
	g_autofree char *part = g_strdup_printf(".%s.part", third);
	g_autofree char *journal = g_strdup_printf(".%s.part-journal", third);
	struct kept kept;

	(void)state;
	make_recording(first);
	make_recording(part);
	make_recording(journal);
	make_recording(".mine.part");
	kept = keep_within(keep, directory, 2 * SIZE);
	assert_int_equal(kept.bytes, 2 * SIZE);
	assert_false(is_there(first));
	assert_int_equal(keep_part_bytes(directory, third), 2 * SIZE);
	assert_int_equal(keep_within(keep, directory, 0).removed, 0);
	keep_remove_unfinished(directory);
	assert_false(is_there(part) || is_there(journal));
	assert_true(is_there(".mine.part"));
}

/* A name is taken only once. */
static void test_settled(void **state)
{
	g_autofree char *part = g_strdup_printf(".%s.part", first);

	(void)state;
	make_recording(part);
	assert_int_equal(part_file_settle(directory, first), 0);
	assert_true(is_there(first) && !is_there(part));
	make_recording(part);
	assert_int_not_equal(part_file_settle(directory, first), 0);
	assert_true(is_there(first) && is_there(part));
	part_file_remove(directory, first);
	assert_true(is_there(first) && !is_there(part));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_oldest_go_first, make_directory,
						remove_directory),
		cmocka_unit_test_setup_teardown(test_clock_that_is_set_back, make_directory,
						remove_directory),
		cmocka_unit_test_setup_teardown(test_files_of_others_stay, make_directory,
						remove_directory),
		cmocka_unit_test_setup_teardown(test_unfinished, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_settled, make_directory, remove_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
