// SPDX-License-Identifier: GPL-2.0
/* A file is there whole or not at all, or from its first line on; nothing else is ever beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

#include "host/output_file.h"
#include "trees.h"

static char *directory;

static int make_directory(void **state)
{
	(void)state;
	directory = g_dir_make_tmp("memtoll-output-XXXXXX", NULL);
	return directory ? 0 : -1;
}

static int remove_directory(void **state)
{
	int err = remove_tree(directory);

	(void)state;
	g_free(directory);
	return err;
}

static unsigned int entries(void)
{
	GDir *opened = g_dir_open(directory, 0, NULL);
	unsigned int count = 0;

	assert_non_null(opened);
	while (g_dir_read_name(opened))
		count++;
	g_dir_close(opened);
	return count;
}

static void assert_content(const char *path, const char *wanted)
{
	g_autofree char *content = NULL;

	assert_true(g_file_get_contents(path, &content, NULL, NULL));
	assert_string_equal(content, wanted);
}

/* Had we been killed before the end: there is nothing that would be left. */
static void test_whole_or_not_at_all(void **state)
{
	g_autofree char *path = g_build_filename(directory, "whole", NULL);
	struct output_file *file;

	(void)state;
	file = output_file_open(path, false, false);
	assert_non_null(file);
	fputs("first", output_file_stream(file));
	fflush(output_file_stream(file));
	assert_int_equal(entries(), 0);
	assert_int_equal(output_file_finish(file), 0);
	assert_content(path, "first");
	file = output_file_open(path, true, false);
	assert_non_null(file);
	fputs("second", output_file_stream(file));
	assert_content(path, "first");
	assert_int_equal(entries(), 1);
	assert_int_equal(output_file_finish(file), 0);
	assert_content(path, "second");
	assert_null(output_file_open(path, false, false));
	file = output_file_open(path, true, false);
	assert_non_null(file);
	output_file_remove(file);
	assert_content(path, "second");
	assert_int_equal(entries(), 1);
	g_unlink(path);
}

/* What came into being meanwhile is another's. */
static void test_is_not_replaced(void **state)
{
	g_autofree char *path = g_build_filename(directory, "other", NULL);
	struct output_file *file = output_file_open(path, false, false);

	(void)state;
	assert_non_null(file);
	assert_true(g_file_set_contents(path, "another's", -1, NULL));
	assert_true(output_file_finish(file) < 0);
	assert_content(path, "another's");
	assert_int_equal(entries(), 1);
	g_unlink(path);
}

static void test_at_once(void **state)
{
	g_autofree char *path = g_build_filename(directory, "lines", NULL);
	struct output_file *file = output_file_open(path, false, true);

	(void)state;
	assert_non_null(file);
	output_file_remove(file);
	assert_int_equal(entries(), 0);
	file = output_file_open(path, false, true);
	assert_non_null(file);
	fputs("line\n", output_file_stream(file));
	fflush(output_file_stream(file));
	assert_content(path, "line\n");
	output_file_remove(file);
	assert_content(path, "line\n");
	assert_null(output_file_open(path, false, true));
	/* Without a line what was there before stays. */
	file = output_file_open(path, true, true);
	assert_non_null(file);
	assert_content(path, "line\n");
	output_file_remove(file);
	assert_content(path, "line\n");
	assert_int_equal(entries(), 1);
	file = output_file_open(path, true, true);
	assert_non_null(file);
	output_file_show(file);
	fputs("first\n", output_file_stream(file));
	fflush(output_file_stream(file));
	assert_content(path, "first\n");
	output_file_remove(file);
	assert_content(path, "first\n");
	file = output_file_open(path, true, true);
	assert_non_null(file);
	fputs("new\n", output_file_stream(file));
	assert_int_equal(output_file_finish(file), 0);
	assert_content(path, "new\n");
	assert_int_equal(entries(), 1);
	g_unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_or_not_at_all),
		cmocka_unit_test(test_is_not_replaced),
		cmocka_unit_test(test_at_once),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
