// SPDX-License-Identifier: GPL-2.0
/*
 * test_swapdevice.c: the machine's swap areas in a faked tree and, as root, one of its own; and
 * which device a number in a swap entry can mean.
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "host/swapdevice.h"
#include "recording/machine_facts.h"
#include "recording/recording.h"
#include "trees.h"

#define HEADER "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"

static char *fake;

static void write_swaps(const char *lines)
{
	g_autofree char *directory = g_build_filename(fake, "proc", NULL);
	g_autofree char *path = g_build_filename(directory, "swaps", NULL);
	g_autofree char *text = g_strconcat(HEADER, lines, NULL);

	assert_int_equal(g_mkdir_with_parents(directory, 0700), 0);
	assert_true(g_file_set_contents(path, text, -1, NULL));
}

static struct swap_devices *devices_of(const char *lines)
{
	write_swaps(lines);
	return swap_devices_read_below(fake);
}

static int make_fake(void **state)
{
	(void)state;
	fake = g_dir_make_tmp("memtoll-swap-XXXXXX", NULL);
	return fake ? 0 : -1;
}

static int remove_fake(void **state)
{
	(void)state;
	remove_tree(fake);
	g_clear_pointer(&fake, g_free);
	return 0;
}

/* One text of all rows. */
static void assert_rows(const struct swap_devices *devices, const bool *seen, const char *expected)
{
	struct recording *recording = recording_create(NULL, false);
	sqlite3_stmt *statement = NULL;

	assert_non_null(recording);
	assert_int_equal(swap_devices_record(devices, seen, recording), 0);
	assert_int_equal(
		sqlite3_prepare_v2(
			recording_database(recording),
			"SELECT COALESCE(group_concat(path || '|' || kind || '|' || size_bytes || '|' ||"
			" priority || '|' || COALESCE(type, '?'), ' '), '') FROM"
			" (SELECT * FROM swap_device ORDER BY path)",
			-1, &statement, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(statement, 0), expected);
	sqlite3_finalize(statement);
	recording_close(recording);
}

static void test_kinds(void **state)
{
	struct swap_devices *devices =
		devices_of("/dev/vdb1                               partition\t1048573\t\t0\t\t-2\n"
			   "/swap\\040file\\134\\011x\t\t\tfile\t\t4093\t0\t-3\n"
			   "/gone\\040(deleted)                     file\t\t1021\t\t0\t\t7\n"
			   "/dev/zram0                              partition\t2039\t\t0\t\t100\n");

	(void)state;
	assert_int_equal(swap_devices_count(devices), 4);
	assert_rows(devices, NULL,
		    "/dev/vdb1|disk|1073738752|-2|? /dev/zram0|zram|2087936|100|?"
		    " /gone|file|1045504|7|? /swap file\\\tx|file|4191232|-3|?");
	swap_devices_free(devices);
}

/* A node may have any name; what it is the kernel tells by its number. */
static void test_number_tells(void **state)
{
	struct swap_devices *devices;
	g_autofree char *sys = g_build_filename(fake, "sys/dev/block", NULL);
	g_autofree char *dev = g_build_filename(fake, "dev", NULL);
	g_autofree char *one = g_build_filename(dev, "fast", NULL);
	g_autofree char *two = g_build_filename(dev, "zram-backup", NULL);
	g_autofree char *link_one = g_build_filename(sys, "252:7", NULL);
	g_autofree char *link_two = g_build_filename(sys, "254:3", NULL);

	(void)state;
	assert_int_equal(g_mkdir_with_parents(dev, 0700), 0);
	assert_int_equal(g_mkdir_with_parents(sys, 0700), 0);
	/* The nodes are never opened. */
	if (mknod(one, S_IFBLK | 0600, makedev(252, 7)) ||
	    mknod(two, S_IFBLK | 0600, makedev(254, 3)))
		skip(); /* no right to make device nodes */
	assert_int_equal(symlink("../../devices/virtual/block/zram7", link_one), 0);
	assert_int_equal(symlink("../../devices/pci0000:00/block/vdc", link_two), 0);
	devices = devices_of("/dev/fast partition 101 0 5\n/dev/zram-backup partition 103 0 4\n");
	assert_rows(devices, NULL, "/dev/fast|zram|103424|5|? /dev/zram-backup|disk|105472|4|?");
	swap_devices_free(devices);
}

static void test_odd_lines(void **state)
{
	struct swap_devices *devices = swap_devices_read_below(fake);
	GString *many = g_string_new(NULL);
	int i;

	(void)state;
	assert_int_equal(swap_devices_count(devices), 0); /* no such file */
	assert_false(swap_devices_refresh(devices));
	swap_devices_free(devices);
	devices = devices_of("\n/a\n/a file\n/a file 1\n/a file 1 2\nrelative file 1 2 3\n"
			     "/a file x 2 3\n/zram file 18446744073709551615 2 3\n"
			     "/zramx partition 1 2 3\n\\ file 1 2 3\n");
	assert_rows(devices, NULL, "/zram|file|9223372036854775807|3|? /zramx|disk|1024|3|?");
	swap_devices_free(devices);
	for (i = 0; i < 101; i++)
		g_string_append_printf(many, "/swap%d file 1 0 %d\n", i, -i);
	devices = devices_of(many->str);
	assert_int_equal(swap_devices_count(devices), SWAP_TYPES);
	swap_devices_free(devices);
	g_string_free(many, TRUE);
}

static void test_refresh(void **state)
{
	struct swap_devices *devices = devices_of("/a file 1009 0 -2\n");

	(void)state;
	assert_false(swap_devices_refresh(devices));
	write_swaps("/a file 1009 503 -2\n"); /* used: no change */
	assert_false(swap_devices_refresh(devices));
	write_swaps("/a file 1009 503 -2\n/dev/zram1 partition 2003 0 100\n");
	assert_true(swap_devices_refresh(devices));
	assert_int_equal(swap_devices_count(devices), 2);
	assert_false(swap_devices_refresh(devices));
	write_swaps("/a file 1009 503 -2\n/dev/zram1 partition 2003 0 50\n");
	assert_true(swap_devices_refresh(devices));
	write_swaps("");
	assert_true(swap_devices_refresh(devices));
	assert_int_equal(swap_devices_count(devices), 0);
	swap_devices_free(devices);
}

/* What is known of a number: 'z' zram, 'd' none, '?' either. */
static char kind_of(const struct swap_devices *devices, const char *seen, unsigned int type)
{
	bool types_seen[SWAP_TYPES] = { false }, known = true, zram;

	for (; *seen; seen++)
		types_seen[*seen - '0'] = true;
	zram = swap_devices_is_zram(devices, types_seen, type, &known);
	if (!known)
		assert_false(zram);
	return !known ? '?' : zram ? 'z' : 'd';
}

static void test_numbers(void **state)
{
	static const char zram[] = "/dev/zram0 partition 1 0 5\n";
	static const char disk[] = "/dev/vdb partition 1 0 4\n";
	g_autofree char *zram_disk = g_strconcat(zram, disk, NULL);
	g_autofree char *disk_zram = g_strconcat(disk, zram, NULL);
	g_autofree char *three = g_strconcat(disk, zram, "/swap file 1 0 3\n", NULL);
	struct swap_devices *devices;

	(void)state;
	/* One device: whatever its number is. */
	devices = devices_of(zram);
	assert_int_equal(kind_of(devices, "0", 0), 'z');
	assert_int_equal(kind_of(devices, "3", 3), 'z');
	/* Two numbers, one device: it changed meanwhile. */
	assert_int_equal(kind_of(devices, "03", 3), '?');
	assert_int_equal(kind_of(devices, "0", 32), '?');
	swap_devices_free(devices);

	devices = devices_of("");
	assert_int_equal(kind_of(devices, "0", 0), '?');
	swap_devices_free(devices);

	devices = devices_of("/a file 1 0 5\n/b file 1 0 5\n");
	assert_int_equal(kind_of(devices, "4", 4), 'd');
	swap_devices_free(devices);

	devices = devices_of(disk_zram);
	assert_int_equal(kind_of(devices, "0", 0), 'd'); /* 0 is the first, always */
	assert_int_equal(kind_of(devices, "1", 1), '?'); /* there may be a gap at 0 */
	assert_int_equal(kind_of(devices, "01", 1), 'z');
	assert_int_equal(kind_of(devices, "25", 2), 'd');
	assert_int_equal(kind_of(devices, "25", 5), 'z');
	swap_devices_free(devices);

	devices = devices_of(zram_disk);
	assert_int_equal(kind_of(devices, "0", 0), 'z');
	assert_int_equal(kind_of(devices, "07", 7), 'd');
	swap_devices_free(devices);

	devices = devices_of(three);
	assert_int_equal(kind_of(devices, "1", 1), '?');  /* first or second */
	assert_int_equal(kind_of(devices, "03", 3), '?'); /* second or third */
	assert_int_equal(kind_of(devices, "13", 1), '?');
	assert_int_equal(kind_of(devices, "136", 3), 'z');
	assert_int_equal(kind_of(devices, "136", 6), 'd');
	swap_devices_free(devices);
}

static void test_numbers_recorded(void **state)
{
	bool seen[SWAP_TYPES] = { false };
	struct swap_devices *devices = devices_of("/b file 1 0 5\n/a file 1 0 4\n");

	(void)state;
	seen[3] = true;
	assert_rows(devices, seen, "/a|file|1024|4|? /b|file|1024|5|?");
	seen[1] = true;
	assert_rows(devices, seen, "/a|file|1024|4|3 /b|file|1024|5|1");
	seen[1] = seen[3] = false;
	seen[0] = true;
	assert_rows(devices, seen, "/a|file|1024|4|? /b|file|1024|5|0");
	swap_devices_free(devices);
}

/* A swap file of our own, whose name the kernel must escape; others' stay as they are. */
static void test_real(void **state)
{
	enum { PAGES = 257 };
	g_autofree char *folder = NULL, *path = NULL;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = PAGES * page;
	struct swap_devices *devices = swap_devices_read();
	g_autofree char *zeros = g_malloc0(bytes);
	bool on = false, came = false, went = false, found = false;
	struct recording *recording;
	sqlite3_stmt *statement = NULL;
	uint32_t *header = (uint32_t *)(void *)(zeros + 1024);

	(void)state;
	/* Format of mkswap(8): version, last page, bad pages; the magic ends the first page. */
	header[0] = 1;
	header[1] = PAGES - 1;
	memcpy(zeros + page - 10, "SWAPSPACE2", 10);
	folder = g_strdup("/var/tmp/memtoll swap-XXXXXX");
	assert_non_null(g_mkdtemp(folder));
	path = g_build_filename(folder, "a file", NULL);
	if (g_file_set_contents_full(path, zeros, (gssize)bytes, G_FILE_SET_CONTENTS_DURABLE, 0600,
				     NULL))
		on = !swapon(path, 0);
	if (on) {
		came = swap_devices_refresh(devices);
		recording = recording_create(NULL, false);
		if (recording && !swap_devices_record(devices, NULL, recording) &&
		    sqlite3_prepare_v2(recording_database(recording),
				       "SELECT size_bytes FROM swap_device WHERE path = ? AND"
				       " kind = 'file'",
				       -1, &statement, NULL) == SQLITE_OK) {
			sqlite3_bind_text(statement, 1, path, -1, SQLITE_STATIC);
			found = sqlite3_step(statement) == SQLITE_ROW &&
				sqlite3_column_int64(statement, 0) == (int64_t)(bytes - page);
		}
		sqlite3_finalize(statement);
		recording_close(recording);
		/* Nothing may be asserted before it is off again. */
		if (swapoff(path))
			print_error("cannot switch %s off: %s\n", path, g_strerror(errno));
		went = swap_devices_refresh(devices);
	}
	g_unlink(path);
	g_rmdir(folder);
	swap_devices_free(devices);
	if (!on)
		skip(); /* no right to, or no file system for swap files */
	assert_true(came);
	assert_true(found);
	assert_true(went);
}

#define FAKED(test) cmocka_unit_test_setup_teardown(test, make_fake, remove_fake)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKED(test_kinds),	     FAKED(test_number_tells), FAKED(test_odd_lines),
		FAKED(test_refresh),	     FAKED(test_numbers),      FAKED(test_numbers_recorded),
		cmocka_unit_test(test_real),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
