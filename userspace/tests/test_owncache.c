// SPDX-License-Identifier: GPL-2.0
/* The caches that servers keep for themselves, as command lines and files of options say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib.h>
#include <glib/gstdio.h>

#include "owncache.h"

#define MIB (1 << 20)

static char *root;

static int make_root(void **state)
{
	(void)state;
	root = g_dir_make_tmp("memtoll-owncache-XXXXXX", NULL);
	return !root;
}

static void remove_below(const char *path)
{
	GDir *directory = g_dir_open(path, 0, NULL);
	const char *name;

	while (directory && (name = g_dir_read_name(directory))) {
		g_autofree char *below = g_build_filename(path, name, NULL);

		if (g_file_test(below, G_FILE_TEST_IS_DIR))
			remove_below(below);
		else
			g_unlink(below);
	}
	if (directory)
		g_dir_close(directory);
	g_rmdir(path);
}

static int remove_root(void **state)
{
	(void)state;
	remove_below(root);
	g_free(root);
	return 0;
}

static void put(const char *path, const char *text)
{
	g_autofree char *real = g_strconcat(root, path, NULL);
	g_autofree char *directory = g_path_get_dirname(real);

	assert_int_equal(g_mkdir_with_parents(directory, 0700), 0);
	assert_true(g_file_set_contents(real, text, -1, NULL));
}

static void check(const char *program, const char *command, int64_t bytes, const char *source)
{
	g_auto(GStrv) arguments = g_strsplit(command, " ", -1);
	struct own_cache cache;

	assert_true(own_cache_of(program, arguments, root, "/data", &cache));
	assert_int_equal(cache.bytes, bytes);
	assert_string_equal(cache.source, source);
	own_cache_clear(&cache);
}

static void innodb(void **state)
{
	(void)state;
	check("mariadbd", "mariadbd", 128LL * MIB, "default");
	check("mysqld", "mysqld --innodb-buffer-pool-size=16M", 16LL * MIB, "command line");
	check("mariadbd", "mariadbd --innodb_buffer_pool_size 2G --x", 2048LL * MIB, "command line");
	check("mariadbd", "mariadbd --loose-innodb-buffer-pool-size=8388608", 8LL * MIB,
	      "command line");
	check("mariadbd", "mariadbd --innodb-buffer-pool-size=1M --innodb-buffer-pool-size=5M",
	      5LL * MIB, "command line");
	check("mariadbd", "mariadbd --innodb-buffer-pool-size=lots", -1, "command line");
	/* Not this one: longer, or shorter. */
	check("mariadbd", "mariadbd --innodb-buffer-pool-size-max=1M --innodb-buffer=2M",
	      128LL * MIB, "default");
	put("/etc/mysql/my.cnf", "# a comment\n[client]\ninnodb_buffer_pool_size=1M\n[mysqld]\n"
				 "!includedir /etc/mysql/conf.d\n");
	check("mariadbd", "mariadbd", 128LL * MIB, "default");
	put("/etc/mysql/conf.d/50-server.cnf", "[mariadb-10.11]\n innodb-buffer-pool-size = 24M\n");
	put("/etc/mysql/conf.d/50-server.off", "[mariadb]\ninnodb-buffer-pool-size = 1G\n");
	check("mariadbd", "mariadbd", 24LL * MIB, "/etc/mysql/conf.d/50-server.cnf");
	check("mariadbd", "mariadbd --no-defaults", 128LL * MIB, "default");
	check("mariadbd", "mariadbd --innodb-buffer-pool-size=16M", 16LL * MIB, "command line");
	put("/own.cnf", "[server]\ninnodb_buffer_pool_size=\"32M\"\n");
	check("mariadbd", "mariadbd --defaults-file=/own.cnf", 32LL * MIB, "/own.cnf");
	check("mariadbd", "mariadbd --defaults-extra-file=/own.cnf", 32LL * MIB, "/own.cnf");
	/* A file that includes itself comes to an end. */
	put("/loop.cnf", "[mysqld]\n!include /loop.cnf\ninnodb_buffer_pool_size=3M\n");
	check("mariadbd", "mariadbd --defaults-file=/loop.cnf", 3LL * MIB, "/loop.cnf");
}

static void postgresql(void **state)
{
	(void)state;
	check("postgres", "postgres -D /data", 128LL * MIB, "default");
	check("postgres", "postgres -B 16", 16 * 8192, "command line");
	check("postgres", "postgres -c shared_buffers=1MB", MIB, "command line");
	check("postgres", "postgres --shared-buffers=64", 64 * 8192, "command line");
	put("/data/postgresql.conf", "#shared_buffers = 1GB\nshared_buffers = 256kB # min 128kB\n"
				     "include 'more.conf'\n");
	check("postgres", "postgres -D /data", 256 << 10, "/data/postgresql.conf");
	put("/data/more.conf", "shared_buffers='2MB'\n");
	check("postgres", "postgres -D /data", 2LL * MIB, "/data/more.conf");
	put("/data/postgresql.auto.conf", "shared_buffers = '3MB'\n");
	check("postgres", "postgres -D /data", 3LL * MIB, "/data/postgresql.auto.conf");
	put("/etc/postgresql.conf", "shared_buffers 512\n");
	check("postgres", "postgres -c config_file=/etc/postgresql.conf", 3LL * MIB,
	      "/data/postgresql.auto.conf");
	check("postgres", "postgres -c shared_buffers=5MB", 5LL * MIB, "command line");
}

static void others_have_none(void **state)
{
	char *arguments[] = { "cat", NULL };
	struct own_cache cache;

	(void)state;
	assert_false(own_cache_of("cat", arguments, root, "/", &cache));
	assert_false(own_cache_find(-1, &cache));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(innodb, make_root, remove_root),
		cmocka_unit_test_setup_teardown(postgresql, make_root, remove_root),
		cmocka_unit_test_setup_teardown(others_have_none, make_root, remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
