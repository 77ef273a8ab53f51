// SPDX-License-Identifier: GPL-2.0
/* The caches that servers keep for themselves, as command lines and files of options say. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <glib.h>
#include <glib/gstdio.h>

#include "host/server_cache.h"

#define MIB (1 << 20)

static char *root;

static int make_root(void **state)
{
	(void)state;
	root = g_dir_make_tmp("memtoll-server-cache-XXXXXX", NULL);
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
	struct server_cache cache;
	int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(server_cache_of(program, arguments, fd, "/data", &cache));
	close(fd);
	assert_int_equal(cache.bytes, bytes);
	assert_string_equal(cache.source, source);
	server_cache_clear(&cache);
}

static void innodb(void **state)
{
	(void)state;
	check("mariadbd", "mariadbd", 128LL * MIB, "default");
	check("mysqld", "mysqld --innodb-buffer-pool-size=16M", 16LL * MIB, "command line");
	check("mariadbd", "mariadbd --innodb_buffer_pool_size 2G --x", 2048LL * MIB,
	      "command line");
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

static char *below(const char *path)
{
	return g_strconcat(root, path, NULL);
}

/*
 * A process names what it likes. Nothing of it is waited for, and none of it leads out of its root.
 */
static void hostile(void **state)
{
	g_autofree char *pipe = below("/pipe"), *zero = below("/zero"), *link = below("/link");
	g_autofree char *up = below("/up"), *huge = below("/huge"), *many = NULL;
	g_autoptr(GString) text = g_string_new("[mysqld]\n");
	int i;

	(void)state;
	put("/before.cnf", "[mysqld]\ninnodb_buffer_pool_size=7M\n!include /pipe\n!include /zero\n"
			   "!include /link\n!include /up\n!include /huge\n!includedir /pipe\n");
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(symlink("/dev/zero", zero), 0);
	/* A file of the host's that is there and would be taken. */
	many = g_strdup_printf("%s.cnf", root);
	assert_true(g_file_set_contents(many, "[mysqld]\ninnodb_buffer_pool_size=1G\n", -1, NULL));
	assert_int_equal(symlink(many, link), 0);
	g_free(many);
	many = g_strdup_printf("../%s.cnf", strrchr(root, '/') + 1);
	assert_int_equal(symlink(many, up), 0);
	assert_true(g_file_set_contents(huge, "[mysqld]\ninnodb_buffer_pool_size=2G\n", -1, NULL));
	assert_int_equal(truncate(huge, 1LL << 40), 0);
	check("mariadbd", "mariadbd --defaults-file=/before.cnf", 7LL * MIB, "/before.cnf");
	/* 30 times itself, eight deep: half a million million files. */
	for (i = 0; i < 30; i++)
		g_string_append(text, "!include /many.cnf\n");
	g_string_append(text, "innodb_buffer_pool_size=11M\n");
	put("/many.cnf", text->str);
	check("mariadbd", "mariadbd --defaults-file=/many.cnf", -1, "more than 64 option files");
	check("mariadbd", "mariadbd --defaults-file=/many.cnf --innodb_buffer_pool_size=13M",
	      13LL * MIB, "command line");
	g_free(many);
	many = g_strdup_printf("%s.cnf", root);
	g_unlink(many);
}

/* What the server's user may not read root does not read for them. */
static void rights(void **state)
{
	g_autofree char *program = below("/postgres"), *conf = below("/postgresql.conf");
	struct server_cache cache;
	gchar *text = NULL;
	gsize length = 0;
	pid_t pid;
	int i;

	(void)state;
	if (geteuid())
		skip();
	assert_true(g_file_get_contents("/bin/sleep", &text, &length, NULL));
	assert_true(g_file_set_contents(program, text, (gssize)length, NULL));
	g_free(text);
	assert_int_equal(chmod(program, 0755), 0);
	assert_int_equal(chmod(root, 0755), 0);
	put("/postgresql.conf", "shared_buffers = 5MB\n");
	pid = fork();
	if (!pid) {
		if (chdir(root) || setgid(65534) || setuid(65534))
			_exit(1);
		execl(program, "postgres", "60", NULL);
		_exit(1);
	}
	for (i = 0; i < 2; i++) {
		assert_int_equal(chmod(conf, i ? 0644 : 0600), 0);
		while (!server_cache_find(pid, &cache))
			assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		assert_int_equal(cache.bytes, i ? 5LL * MIB : 128LL * MIB);
		if (!i)
			assert_string_equal(cache.source, "default");
		server_cache_clear(&cache);
	}
	/* And this thread has all of its own. */
	assert_int_equal(chmod(conf, 0000), 0);
	i = open(conf, O_RDONLY | O_CLOEXEC);
	assert_true(i >= 0);
	close(i);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
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
	struct server_cache cache;

	(void)state;
	assert_false(server_cache_of("cat", arguments, -1, "/", &cache));
	assert_false(server_cache_find(-1, &cache));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(innodb, make_root, remove_root),
		cmocka_unit_test_setup_teardown(postgresql, make_root, remove_root),
		cmocka_unit_test_setup_teardown(hostile, make_root, remove_root),
		cmocka_unit_test_setup_teardown(rights, make_root, remove_root),
		cmocka_unit_test_setup_teardown(others_have_none, make_root, remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
