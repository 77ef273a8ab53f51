// SPDX-License-Identifier: GPL-2.0
/* Names of memory cgroups by the numbers of their directories. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sys/stat.h>

#include "top/top_groups.h"
#include "top/top_pseudonyms.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static uint64_t make(const char *root, const char *path)
{
	g_autofree char *directory = g_strconcat(root, path, NULL);
	struct stat status;

	assert_int_equal(g_mkdir_with_parents(directory, 0700), 0);
	assert_int_equal(stat(directory, &status), 0);
	return status.st_ino;
}

static void test_names(void **state)
{
	g_autofree char *root = g_dir_make_tmp("memtoll-groups-XXXXXX", NULL);
	g_autofree char *gone = g_strconcat(root, "/a/late", NULL);
	g_autofree char *expected = NULL;
	g_autofree char *command = g_strdup_printf("rm -r %s", root);
	struct top_groups *groups = top_groups_new(root, NULL);
	uint64_t inner = make(root, "/a/b.service"), outer = make(root, "/a"), top = make(root, "");
	uint64_t container = make(root, "/docker/" ID), late, later;

	(void)state;
	assert_string_equal(top_group(groups, inner), "/a/b.service");
	assert_string_equal(top_group(groups, outer), "/a");
	assert_string_equal(top_group(groups, top), "/");
	assert_string_equal(top_group(groups, 0), "(no group)");
	/* No file of a runtime tells its name. */
	assert_string_equal(top_group(groups, container), "0123456789ab");
	top_groups_refresh(groups);
	late = make(root, "/a/late");
	assert_string_equal(top_group(groups, late), "/a/late");
	/* Made after the directories were read: it has its name the next time. */
	later = make(root, "/a/later");
	expected = g_strdup_printf("(group %" G_GUINT64_FORMAT ", gone)", later);
	assert_string_equal(top_group(groups, later), expected);
	assert_string_equal(top_group(groups, later), expected);
	top_groups_refresh(groups);
	assert_string_equal(top_group(groups, later), "/a/later");
	assert_int_equal(g_rmdir(gone), 0);
	/* It is known still; one that nobody has seen is a number. */
	assert_string_equal(top_group(groups, late), "/a/late");
	assert_string_equal(top_group(groups, 1ULL << 40), "(group 1099511627776, gone)");
	top_groups_free(groups);
	assert_int_equal(system(command), 0);
}

static void assert_said(char *said, const char *expected)
{
	assert_string_equal(said, expected);
	g_free(said);
}

static void test_pseudonyms(void **state)
{
	g_autofree char *root = g_dir_make_tmp("memtoll-groups-XXXXXX", NULL);
	g_autofree char *command = g_strdup_printf("rm -r %s", root);
	struct top_pseudonyms *said = top_pseudonyms_new();
	struct top_groups *groups = top_groups_new(root, said);
	uint64_t inner = make(root, "/a/b.service"), top = make(root, ""), container;
	g_autofree char *first = NULL;

	(void)state;
	container = make(root, "/docker/" ID);
	first = g_strdup(top_group(groups, inner));
	assert_true(g_str_has_prefix(first, "group-"));
	assert_true(g_str_has_prefix(top_group(groups, container), "group-"));
	assert_string_not_equal(top_group(groups, container), first);
	assert_string_equal(top_group(groups, top), "/");
	assert_string_equal(top_group(groups, 0), "(no group)");
	/* Read again it is the same. */
	top_groups_refresh(groups);
	make(root, "/c");
	top_group(groups, make(root, "/c/d"));
	assert_string_equal(top_group(groups, inner), first);
	assert_said(top_pseudonym(said, "program", "mariadbd"), "program-1");
	assert_said(top_pseudonym(said, "program", "redis"), "program-2");
	assert_said(top_pseudonym(said, "program", "mariadbd"), "program-1");
	assert_said(top_pseudonym_file(said, "main.c"), "file-1.c");
	assert_said(top_pseudonym_file(said, "libx.so.6"), "file-2");
	assert_said(top_pseudonym_area(said, "heap"), "heap");
	assert_said(top_pseudonym_area(said, "stack redis"), "stack program-2");
	assert_said(top_pseudonym_area(said, "library main.c"), "library file-1");
	assert_said(top_pseudonym_function(said, "serve<int>"), "serve<int>");
	assert_said(top_pseudonym_function(said, "LazyCompile:~f /srv/a.js:1"), "function-1");
	/* Without them names stay. */
	assert_said(top_pseudonym(NULL, "program", "redis"), "redis");
	assert_said(top_pseudonym_area(NULL, "stack redis"), "stack redis");
	top_groups_free(groups);
	top_pseudonyms_free(said);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_pseudonyms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
