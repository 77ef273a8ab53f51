// SPDX-License-Identifier: GPL-2.0
/* What is kept until the machine is booted: given back whole, to its key and its boot, or not at all. */
#define _GNU_SOURCE 1

#include <dirent.h>
#include <fcntl.h>
#include <glib.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/boot_cache.h"
#include "host/kallsyms.h"
#include "trees.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

static char directory[] = "/tmp/boot-cache-test-XXXXXX";
static char kept_in[sizeof(directory) + 8];

static int make_directory(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(kept_in, sizeof(kept_in), "%s/kept", directory);
	return setenv("MEMTOLL_PRICES", kept_in, 1);
}

static int remove_directory(void **state)
{
	(void)state;
	return remove_tree(directory);
}

static int fresh(void **state)
{
	(void)state;
	return access(kept_in, F_OK) ? 0 : remove_tree(kept_in);
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Of the one file; empty where there is none. */
static void only_file(char *path, size_t size)
{
	DIR *list = opendir(kept_in);
	struct dirent *entry;

	*path = '\0';
	while (list && (entry = readdir(list)))
		if (*entry->d_name != '.') {
			assert_int_equal(*path, '\0');
			snprintf(path, size, "%s/%s", kept_in, entry->d_name);
		}
	if (list)
		closedir(list);
}

static bool is_kept(const char *kind, const char *key)
{
	char read[5];

	return boot_cache_read(kind, key, read, sizeof(read)) && !memcmp(read, "found", 5);
}

static void keep(void)
{
	boot_cache_write("kind", "key", "found", 5);
	assert_true(is_kept("kind", "key"));
}

static void test_keys(void **state)
{
	char read[6];

	(void)state;
	assert_false(is_kept("kind", "key"));
	keep();
	assert_false(is_kept("kind", "other"));
	assert_false(is_kept("other", "key"));
	assert_false(boot_cache_read("kind", "key", read, 4));
	assert_false(boot_cache_read("kind", "key", read, 6));
	boot_cache_write("kind", "key", "again!", 6);
	assert_false(is_kept("kind", "key"));
	assert_true(boot_cache_read("kind", "key", read, 6));
	assert_memory_equal(read, "again!", 6);
}

static void test_of_any_size(void **state)
{
	size_t size = 0;
	char *loaded;

	(void)state;
	assert_null(boot_cache_load("kind", "key", &size));
	assert_true(boot_cache_keeps());
	keep();
	loaded = boot_cache_load("kind", "key", &size);
	assert_int_equal(size, 5);
	assert_memory_equal(loaded, "found", 5);
	g_free(loaded);
	boot_cache_write("kind", "empty", "", 0);
	g_free(boot_cache_load("kind", "empty", &size));
	assert_int_equal(size, 0);
	assert_int_equal(setenv("MEMTOLL_PRICES", "", 1), 0);
	assert_false(boot_cache_keeps());
	assert_null(boot_cache_load("kind", "key", &size));
	assert_int_equal(setenv("MEMTOLL_PRICES", kept_in, 1), 0);
}

static void test_torn(void **state)
{
	char path[512];
	struct stat st;
	off_t at;

	(void)state;
	keep();
	only_file(path, sizeof(path));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	for (at = 0; at < st.st_size; at++) {
		int fd = open(path, O_RDWR | O_CLOEXEC);
		char byte;

		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 1;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		close(fd);
		assert_false(is_kept("kind", "key"));
		keep();
	}
	assert_int_equal(truncate(path, st.st_size - 1), 0);
	assert_false(is_kept("kind", "key"));
	assert_int_equal(truncate(path, 0), 0);
	assert_false(is_kept("kind", "key"));
	keep();
}

/* What somebody else may have written, or made to look like ours, is none. */
static void test_poisoned(void **state)
{
	char path[512], moved[600];

	(void)state;
	keep();
	only_file(path, sizeof(path));
	assert_int_equal(chmod(path, 0620), 0);
	assert_false(is_kept("kind", "key"));
	assert_int_equal(chmod(path, 0602), 0);
	assert_false(is_kept("kind", "key"));
	assert_int_equal(chmod(path, 0600), 0);
	assert_true(is_kept("kind", "key"));
	assert_int_equal(chmod(kept_in, 0720), 0);
	assert_false(is_kept("kind", "key"));
	assert_int_equal(chmod(kept_in, 0700), 0);

	snprintf(moved, sizeof(moved), "%s/moved", directory);
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(symlink(moved, path), 0);
	assert_false(is_kept("kind", "key"));
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_false(is_kept("kind", "key"));
	unlink(path);
	assert_int_equal(rename(moved, path), 0);
	assert_true(is_kept("kind", "key"));
	if (geteuid())
		return;
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_false(is_kept("kind", "key"));
	assert_int_equal(chown(path, 0, 0), 0);
	assert_int_equal(chown(kept_in, 65534, 65534), 0);
	assert_false(is_kept("kind", "key"));
	assert_int_equal(chown(kept_in, 0, 0), 0);
	assert_true(is_kept("kind", "key"));
}

/* Exit status of the child: 0, where its boot has the file that it kept, and not that of this one. */
static int other_boot(const char *id)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(id, BOOT_ID, NULL, MS_BIND, NULL))
		return 2;
	if (is_kept("kind", "key"))
		return 1;
	boot_cache_write("kind", "key", "other", 5);
	return 0;
}

static void test_other_boot(void **state)
{
	char id[512];
	int status;
	pid_t child;

	(void)state;
	keep();
	snprintf(id, sizeof(id), "%s/boot_id", directory);
	write_text(id, "01234567-89ab-cdef-0123-456789abcdef\n");
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(other_boot(id));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2)
		skip(); /* no namespaces for this user */
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(is_kept("kind", "key"));
}

static void test_nowhere(void **state)
{
	(void)state;
	keep();
	setenv("MEMTOLL_PRICES", "", 1);
	assert_false(is_kept("kind", "key"));
	boot_cache_write("kind", "key", "found", 5);
	setenv("MEMTOLL_PRICES", "/dev/null", 1);
	boot_cache_write("kind", "key", "found", 5);
	assert_false(is_kept("kind", "key"));
	setenv("MEMTOLL_PRICES", kept_in, 1);
	assert_true(is_kept("kind", "key"));
}

static struct kernel_function of_table(const char *path, const char *first, const char *second)
{
	struct kernel_function both[] = { { .name = first }, { .name = second } };

	kallsyms_find_once(path, both, 2);
	assert_string_equal(both[0].name, first);
	return both[0];
}

/* What a table once had is not read again; for other names it is. */
static void test_functions(void **state)
{
	static const char early[] = "ffffffff81001000 T one\nffffffff81002000 T two\n";
	static const char late[] = "ffffffff81003000 T one\nffffffff81004000 T two\n";
	char path[512];

	(void)state;
	snprintf(path, sizeof(path), "%s/table", directory);
	write_text(path, early);
	assert_int_equal(of_table(path, "one", "none").start, 0xffffffff81001000);
	write_text(path, late);
	assert_int_equal(of_table(path, "one", "none").start, 0xffffffff81001000);
	assert_int_equal(of_table(path, "one", "none").end, 0xffffffff81002000);
	assert_int_equal(of_table(path, "one", "two").start, 0xffffffff81003000);
	assert_int_equal(of_table(path, "two", "one").start, 0xffffffff81004000);
	assert_int_equal(fresh(NULL), 0);
	assert_int_equal(of_table(path, "one", "none").start, 0xffffffff81003000);
}

/*
 * Nothing is kept of a table that hides its addresses, nor of a module, which may move, nor of one
 * that could not be read to its end.
 */
static void test_functions_not_kept(void **state)
{
	static const char hidden[] = "0000000000000000 T one\n0000000000000000 T two\n";
	static const char module[] = "ffffffff81001000 T one\nffffffffc0001000 t two\t[module]\n";
	static char partial[128 * 1024] = "ffffffff81001000 T one\n";
	char path[512], file[512];

	(void)state;
	snprintf(path, sizeof(path), "%s/table", directory);
	write_text(path, hidden);
	assert_int_equal(of_table(path, "one", "two").start, 0);
	only_file(file, sizeof(file));
	assert_string_equal(file, "");
	write_text(path, module);
	assert_int_equal(of_table(path, "one", "two").start, 0xffffffff81001000);
	assert_int_equal(of_table(path, "two", "one").start, 0xffffffffc0001000);
	only_file(file, sizeof(file));
	assert_string_equal(file, "");
	memset(partial + strlen(partial), 'x', sizeof(partial) - strlen(partial) - 1);
	write_text(path, partial);
	assert_int_equal(of_table(path, "one", "two").start, 0xffffffff81001000);
	only_file(file, sizeof(file));
	assert_string_equal(file, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_keys, fresh),
		cmocka_unit_test_setup(test_of_any_size, fresh),
		cmocka_unit_test_setup(test_torn, fresh),
		cmocka_unit_test_setup(test_poisoned, fresh),
		cmocka_unit_test_setup(test_other_boot, fresh),
		cmocka_unit_test_setup(test_nowhere, fresh),
		cmocka_unit_test_setup(test_functions, fresh),
		cmocka_unit_test_setup(test_functions_not_kept, fresh),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
