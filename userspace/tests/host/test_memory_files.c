// SPDX-License-Identifier: GPL-2.0
/* test_memory_files.c: what a memory cgroup's files say, of both versions; nothing is made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <glib.h>
#include <string.h>

#include "host/memory_files.h"

static void put(const char *directory, const char *name, const char *text)
{
	g_autofree char *path = g_build_filename(directory, name, NULL);

	assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void finish(const char *directory)
{
	g_autofree char *command = g_strdup_printf("rm -r %s", directory);

	assert_int_equal(system(command), 0);
}

static void test_version_2(void **state)
{
	g_autofree char *directory = g_dir_make_tmp("memtoll-figures-XXXXXX", NULL);
	struct memory_figures figures;

	(void)state;
	put(directory, "memory.current", "40960\n");
	put(directory, "memory.stat",
	    "anon 4099\nfile 8191\nfile_mapped 7\nworkingset_refault_file 11\npgscan 13\n"
	    "pgscan_kswapd 3\npgfault 17\npgmajfault 19\n");
	put(directory, "memory.events", "low 1\nhigh 23\nmax 29\noom 5\noom_kill 31\n");
	assert_true(memory_files_read(directory, &figures));
	assert_int_equal(figures.values[MEMORY_USAGE], 40960);
	assert_int_equal(figures.values[MEMORY_ANON], 4099);
	assert_int_equal(figures.values[MEMORY_FILE], 8191);
	assert_int_equal(figures.values[MEMORY_SHMEM], -1);
	assert_int_equal(figures.values[MEMORY_FAULTS], 17);
	assert_int_equal(figures.values[MEMORY_MAJOR_FAULTS], 19);
	assert_int_equal(figures.values[MEMORY_REFAULTS_ANON], -1);
	assert_int_equal(figures.values[MEMORY_REFAULTS_FILE], 11);
	assert_int_equal(figures.values[MEMORY_SCANNED], 13);
	assert_int_equal(figures.values[MEMORY_STOLEN], -1);
	assert_int_equal(figures.values[MEMORY_HIGH], 23);
	assert_int_equal(figures.values[MEMORY_MAX], 29);
	assert_int_equal(figures.values[MEMORY_OOM_KILLS], 31);
	finish(directory);
}

/* What is below is in "total_" only; there are no events of limits. */
static void test_version_1(void **state)
{
	g_autofree char *directory = g_dir_make_tmp("memtoll-figures-XXXXXX", NULL);
	struct memory_figures figures;

	(void)state;
	put(directory, "memory.usage_in_bytes", "40960\n");
	put(directory, "memory.stat",
	    "cache 1\nrss 2\npgfault 3\ntotal_cache 8191\ntotal_rss 4099\ntotal_rss_huge 7\n"
	    "total_pgfault 17\n");
	put(directory, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 31\n");
	assert_true(memory_files_read(directory, &figures));
	assert_int_equal(figures.values[MEMORY_USAGE], 40960);
	assert_int_equal(figures.values[MEMORY_ANON], 4099);
	assert_int_equal(figures.values[MEMORY_FILE], 8191);
	assert_int_equal(figures.values[MEMORY_FAULTS], 17);
	assert_int_equal(figures.values[MEMORY_OOM_KILLS], 31);
	assert_int_equal(figures.values[MEMORY_SCANNED], -1);
	assert_int_equal(figures.values[MEMORY_MAX], -1);
	finish(directory);
}

static void test_none(void **state)
{
	g_autofree char *directory = g_dir_make_tmp("memtoll-figures-XXXXXX", NULL);
	struct memory_figures figures;
	size_t i;

	(void)state;
	put(directory, "memory.stat", "");
	assert_false(memory_files_read(directory, &figures));
	assert_false(memory_files_read("/nonexistent", &figures));
	for (i = 0; i < MEMORY_FIGURES; i++)
		assert_int_equal(figures.values[i], -1);
	finish(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version_2),
		cmocka_unit_test(test_version_1),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
