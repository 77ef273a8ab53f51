// SPDX-License-Identifier: GPL-2.0
/* The cache of unwind tables: what is read back is what was compiled, and nothing else is read. */
#define _GNU_SOURCE 1

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "measured.h"
#include "own_libc.h"
#include "programs.h"
#include "unwind/unwind_cache.h"

#if defined(__SANITIZE_ADDRESS__)
#define SLOWDOWN 10
#else
#define SLOWDOWN 1
#endif

#define KEY "00112233445566778899aabbccddeeff00112233"
#define LIBRARIES 61

static struct unwind_table expected;
static int library = -1; /* libc.so.6 */
static int other = -1;	 /* a program without .eh_frame: whoever compiles it gets an error */

static char *cache_path(const char *name)
{
	return text("%s/cache/%s", directory, name);
}

static void assert_expected(const struct unwind_table *table)
{
	assert_int_equal(table->count, expected.count);
	assert_int_equal(table->base, expected.base);
	assert_int_equal(table->skipped, expected.skipped);
	assert_memory_equal(table->rows, expected.rows, table->count * sizeof(*table->rows));
}

static size_t file_count(const char *path)
{
	DIR *listing = opendir(path);
	struct dirent *entry;
	size_t count = 0;

	if (!listing)
		return 0;
	while ((entry = readdir(listing)))
		count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
	closedir(listing);
	return count;
}

/* Store the library's table under a key. */
static void store(const char *key)
{
	struct unwind_table table;

	assert_int_equal(unwind_cache_get(key, library, &table), 0);
	assert_expected(&table);
	unwind_table_free(&table);
}

/* Is the table of the key read from the cache? The file behind the descriptor has none. */
static bool is_cached(const char *key)
{
	struct unwind_table table;
	int err = unwind_cache_get(key, other, &table);

	if (!err) {
		assert_expected(&table);
		unwind_table_free(&table);
		return true;
	}
	assert_int_equal(err, -ENOENT);
	assert_null(table.rows);
	return false;
}

static int fresh_cache(void **state)
{
	char *path = cache_path("");

	(void)state;
	run(text("rm -rf %s", path));
	setenv("MEMTOLL_CACHE", path, 1);
	free(path);
	return 0;
}

/* A file has one key, until it changes; and no other file has it, whatever it calls itself. */
static void test_file_key(void **state)
{
	char *path = text("%s/file", directory), *again = text("%s/again", directory);
	char *first, *second;
	int fd, copy;

	(void)state;
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	copy = open(again, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && copy >= 0);
	first = unwind_file_key("00", fd);
	second = unwind_file_key("00", fd);
	assert_int_equal(strlen(first), 64);
	assert_string_equal(first, second);
	free(second);
	second = unwind_file_key("00", copy);
	assert_string_not_equal(first, second);
	free(second);
	second = unwind_file_key("01", fd);
	assert_string_not_equal(first, second);
	free(second);
	assert_int_equal(write(fd, "1", 1), 1);
	second = unwind_file_key("00", fd);
	assert_string_not_equal(first, second);
	free(second);
	free(first);
	close(copy);
	assert_null(unwind_file_key("00", copy));
	close(fd);
	free(again);
	free(path);
}

/* The rows of one file are not taken for another's of the same build id. */
static void test_same_build_id(void **state)
{
	char *first = unwind_file_key(KEY, library), *second = unwind_file_key(KEY, other);
	struct unwind_table table;
	char *path = cache_path("");

	(void)state;
	store(first);
	assert_int_equal(file_count(path), 1);
	assert_int_equal(unwind_cache_get(second, other, &table), -ENOENT);
	assert_true(is_cached(first));
	assert_int_equal(file_count(path), 1);
	free(path);
	free(second);
	free(first);
}

static void test_round_trip(void **state)
{
	char *path = cache_path(""), *file = cache_path(KEY ".rows");
	struct stat st;

	(void)state;
	assert_false(is_cached(KEY));
	store(KEY);
	assert_int_equal(file_count(path), 1);
	assert_true(is_cached(KEY));
	store(KEY);
	assert_int_equal(file_count(path), 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, 32 + expected.count * 8);
	free(file);
	free(path);
}

/* What is no key is no file name either. */
static void test_keys(void **state)
{
	static const char *const odd[] = {
		"",
		"..",
		"../../etc/passwd",
		"0011223344556677/../x",
		"00112233445566778",
		"0011",
		"00112233445566XY",
		"00112233445566AA",
		"0011223344556677\n",
		"/0112233445566aa",
	};
	char *path = cache_path(""), *long_id = text("%0130d", 7);

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		store(odd[i]);
		assert_false(is_cached(odd[i]));
	}
	store(long_id);
	assert_int_equal(file_count(path), 0);
	long_id[128] = '\0';
	store(long_id);
	assert_true(is_cached(long_id));
	store("0011223344556677");
	assert_true(is_cached("0011223344556677"));
	free(long_id);
	free(path);
}

/* Any damage is seen, and the file written again. */
static void test_broken_files(void **state)
{
	char *file = cache_path(KEY ".rows"), *bytes;
	size_t size;

	(void)state;
	store(KEY);
	bytes = read_file(file, &size);
	for (size_t at = 0; at < size; at = at < 37 ? at + 1 : at * 3) {
		bytes[at] ^= 0x20;
		write_file(file, bytes, size);
		assert_false(is_cached(KEY));
		bytes[at] ^= 0x20;
	}
	for (size_t cut = 0; cut < size; cut += cut < 41 ? 1 : 10007) {
		write_file(file, bytes, cut);
		assert_false(is_cached(KEY));
	}
	write_file(file, bytes, size + 1);
	assert_false(is_cached(KEY));
	store(KEY);
	assert_true(is_cached(KEY));
	write_file(file, bytes, size);
	assert_true(is_cached(KEY));
	free(bytes);
	free(file);
}

/* Another version, or rows that BPF cannot bisect, with a checksum that is right. */
static void test_foreign_files(void **state)
{
	static const size_t places[] = { 0, 8, 32, 32 + 8 * 97 };
	char *file = cache_path(KEY ".rows"), *bytes;
	uint32_t sum;
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		store(KEY);
		bytes = read_file(file, &size);
		/* The lowest byte of the version, or the highest of a row's pc. */
		bytes[places[i] + (places[i] < 32 ? 0 : 3)] ^= 0x40;
		memset(bytes + 28, 0, 4);
		sum = (uint32_t)crc32(0, (const Bytef *)bytes, (uInt)size);
		memcpy(bytes + 28, &sum, 4);
		write_file(file, bytes, size);
		assert_false(is_cached(KEY));
		store(KEY);
		assert_true(is_cached(KEY));
		free(bytes);
	}
	free(file);
}

static void test_odd_files(void **state)
{
	char *file = cache_path(KEY ".rows"), *target = cache_path("elsewhere");

	(void)state;
	store(KEY);
	assert_int_equal(rename(file, target), 0);
	assert_int_equal(symlink(target, file), 0);
	assert_false(is_cached(KEY));
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkfifo(file, 0600), 0);
	assert_false(is_cached(KEY));
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkdir(file, 0700), 0);
	assert_false(is_cached(KEY));
	store(KEY);
	assert_int_equal(rmdir(file), 0);
	assert_int_equal(rename(target, file), 0);
	assert_true(is_cached(KEY));
	if (geteuid() == 0) {
		assert_int_equal(chown(file, 12345, 12345), 0);
		assert_false(is_cached(KEY));
	}
	free(target);
	free(file);
}

static void test_directories(void **state)
{
	char *path = cache_path("inner"), *link = cache_path("link");
	char *below = cache_path("a/b/c");

	(void)state;
	/* Others may write to it. */
	setenv("MEMTOLL_CACHE", path, 1);
	store(KEY);
	assert_int_equal(chmod(path, 0770), 0);
	assert_false(is_cached(KEY));
	assert_int_equal(chmod(path, 0702), 0);
	assert_false(is_cached(KEY));
	assert_int_equal(chmod(path, 0755), 0);
	assert_true(is_cached(KEY));
	/* A link to it. */
	assert_int_equal(symlink(path, link), 0);
	setenv("MEMTOLL_CACHE", link, 1);
	assert_false(is_cached(KEY));
	/* Somebody else's. */
	setenv("MEMTOLL_CACHE", path, 1);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_false(is_cached(KEY));
		store("0011223344556677");
		assert_int_equal(file_count(path), 1);
	}
	/* No directory; one that has to be made; none wanted. */
	setenv("MEMTOLL_CACHE", "/dev/null", 1);
	store(KEY);
	setenv("MEMTOLL_CACHE", below, 1);
	store(KEY);
	assert_true(is_cached(KEY));
	setenv("MEMTOLL_CACHE", "", 1);
	store(KEY);
	assert_false(is_cached(KEY));
	free(below);
	free(link);
	free(path);
}

static void test_home(void **state)
{
	char *path = cache_path("xdg"), *below = cache_path("xdg/memtoll/unwind");
	char *hidden = cache_path("xdg/.cache/memtoll/unwind");

	(void)state;
	/* root has a directory of the system: a test does not write there. */
	if (geteuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	unsetenv("MEMTOLL_CACHE");
	assert_int_equal(mkdir(directory, 0700) == 0 || errno == EEXIST, 1);
	setenv("XDG_CACHE_HOME", path, 1);
	store(KEY);
	if (getuid() == 0) {
		/* Nobody may not write here. */
		assert_int_equal(file_count(below), 0);
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(chmod(directory, 0711), 0);
		run(text("mkdir -p %s && chown 65534 %s && chmod 711 %s/..", path, path, path));
		assert_int_equal(seteuid(65534), 0);
		store(KEY);
	}
	assert_int_equal(file_count(below), 1);
	assert_true(is_cached(KEY));
	setenv("XDG_CACHE_HOME", "relative", 1);
	setenv("HOME", path, 1);
	assert_false(is_cached(KEY));
	store(KEY);
	assert_int_equal(file_count(hidden), 1);
	unsetenv("HOME");
	assert_false(is_cached(KEY));
	assert_int_equal(seteuid(getuid()), 0);
	assert_int_not_equal(access("relative", F_OK), 0);
	free(hidden);
	free(below);
	free(path);
}

/* A sparse file of a size, and so many hours old. */
static void put_old(const char *name, off_t size, int hours)
{
	struct timespec times[2];
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	clock_gettime(CLOCK_REALTIME, &times[0]);
	times[0].tv_sec -= hours * 3600;
	times[1] = times[0];
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
}

static void test_limit(void **state)
{
	char *oldest = cache_path("aaaaaaaaaaaaaaa1.rows");
	char *older = cache_path("aaaaaaaaaaaaaaa2.rows");
	char *used = cache_path(KEY ".rows");
	char *foreign = cache_path("precious.txt"), *left = cache_path(".new-1");
	char *unfinished = cache_path(".new-2");

	(void)state;
	store(KEY);
	put_old(used, 32 + (off_t)expected.count * 8, 499);
	put_old(oldest, 127ll << 20, 401);
	put_old(older, 127ll << 20, 307);
	put_old(foreign, 1ll << 40, 503);
	put_old(left, 1ll << 30, 3);
	put_old(unfinished, 1ll << 30, 0);
	/* In use again, so no longer the oldest. */
	assert_true(is_cached(KEY));
	/* The directory is looked at again after some stores; all of them take 15 MB. */
	for (unsigned int i = 0; i < 67; i++) {
		char *key = text("bbbbbbbbbbbbbb%02x", i);

		store(key);
		free(key);
	}
	assert_int_not_equal(access(oldest, F_OK), 0);
	assert_int_equal(access(older, F_OK), 0);
	assert_int_equal(access(used, F_OK), 0);
	assert_true(is_cached(KEY));
	/* No table, so not ours to remove; what a dead process left is, but not at once. */
	assert_int_equal(access(foreign, F_OK), 0);
	assert_int_not_equal(access(left, F_OK), 0);
	assert_int_equal(access(unfinished, F_OK), 0);
	free(unfinished);
	free(left);
	free(foreign);
	free(used);
	free(older);
	free(oldest);
}

/* Attaching to a process with 200 libraries: less than 2 s, of which reading may take half. */
static void test_speed(void **state)
{
	struct timespec begun, done;
	double seconds;

	(void)state;
	for (unsigned int pass = 0; pass < 2; pass++) {
		clock_gettime(CLOCK_MONOTONIC, &begun);
		for (unsigned int i = 0; i < LIBRARIES; i++) {
			char *key = text("cccccccccccccc%02x", i);
			struct unwind_table table;

			assert_int_equal(unwind_cache_get(key, pass ? other : library, &table), 0);
			assert_int_equal(table.count, expected.count);
			unwind_table_free(&table);
			free(key);
		}
		clock_gettime(CLOCK_MONOTONIC, &done);
		seconds = (double)(done.tv_sec - begun.tv_sec) +
			  (double)(done.tv_nsec - begun.tv_nsec) * 1e-9;
		print_message("%u tables of %zu rows %s: %.3f s\n", LIBRARIES, expected.count,
			      pass ? "read" : "compiled and stored", seconds);
	}
	assert_true(!times_count() || seconds < 0.3 * SLOWDOWN);
}

static int prepare(void **state)
{
	static const char assembly[] = ".globl f\nf: ret\n";
	char *from = NULL, *path;

	if (make_directory(state) != 0)
		return -1;
	from = text("%s/none.s", directory);
	path = text("%s/none", directory);
	write_file(from, assembly, strlen(assembly));
	run(text("gcc -shared -nostdlib -o %s %s", path, from));
	other = open(path, O_RDONLY | O_CLOEXEC);
	library = open(own_libc(), O_RDONLY | O_CLOEXEC);
	free(from);
	free(path);
	return other >= 0 && library >= 0 ? unwind_table_compile(library, &expected) : -1;
}

static int finish(void **state)
{
	unwind_table_free(&expected);
	close(other);
	close(library);
	return remove_directory(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_key),
		cmocka_unit_test_setup(test_same_build_id, fresh_cache),
		cmocka_unit_test_setup(test_round_trip, fresh_cache),
		cmocka_unit_test_setup(test_keys, fresh_cache),
		cmocka_unit_test_setup(test_broken_files, fresh_cache),
		cmocka_unit_test_setup(test_foreign_files, fresh_cache),
		cmocka_unit_test_setup(test_odd_files, fresh_cache),
		cmocka_unit_test_setup(test_directories, fresh_cache),
		cmocka_unit_test_setup(test_home, fresh_cache),
		cmocka_unit_test_setup(test_limit, fresh_cache),
		cmocka_unit_test_setup(test_speed, fresh_cache),
	};

	return cmocka_run_group_tests(tests, prepare, finish);
}
