// SPDX-License-Identifier: GPL-2.0
/* Reads that rest: no program sees them, the kernel counts them, and those in windows speak for them. */
#include "tests/bpf/memory.h"

#define AREA_START 0x7f1200000000ULL
#define BYTES 8192
#define FD 3

static struct vm_area_struct area;
static struct signal_struct signals;
static struct mapped_file mapped;
static struct mount mount; /* of the root */
static struct files_struct files;
static struct fdtable table;
static struct file *opened[8];
static struct memtoll_read_key key; /* of the last read, whose thread may have ended */

static void begin(void)
{
	host_begin();
	fault_draw = ~0U;
	calls_rest = CALLS_REST;
	calls_watched_ns = reads_watched_ns = kernel.now_ns;
	tables_begin(4);
	add_area(&area, AREA_START, AREA_START + MEMTOLL_PAGE_SIZE, 0);
	set_file(&area, &mapped, 0xef53);
	mapped.inode.i_mode = 0100644;
	mount.mnt_parent = &mount;
	memcpy((void *)&mapped.file.f_path.mnt, &(void *){ &mount.mnt }, sizeof(void *));
	kernel_object(&mount, sizeof(mount));
	mapped.dentry.d_parent = &mapped.dentry;
	opened[FD] = &mapped.file;
	table.max_fds = 8;
	table.fd = opened;
	files.fdt = &table;
	kernel_object(opened, sizeof(opened));
	kernel_object(&table, sizeof(table));
	kernel_object(&files, sizeof(files));
	host.task.files = &files;
	host.task.signal = &signals;
	signals.live.counter = 0;
}

static void enter(__u64 fd)
{
	__u64 context[2] = { (__u64)&host.regs, NR_PREAD64 };

	host.regs.di = fd;
	host.regs.orig_ax = NR_PREAD64;
	read_enter(context);
	kernel.now_ns += 100;
}

static void leave(__u64 result)
{
	__u64 context[2] = { (__u64)&host.regs, result };

	host.task.ioac.syscr++;
	read_exit(context);
	kernel.now_ns += 100;
}

static void read_file(void)
{
	enter(FD);
	leave(BYTES);
	key = host_thread()->read_key;
}

static void read_files(int count)
{
	while (count--)
		read_file();
}

static void settle(void)
{
	reads_settle = 1;
	drain();
	reads_settle = 0;
}

static const struct memtoll_read_sum *sum(void)
{
	static struct memtoll_read_sum found;

	assert_true(add_rows(&found, sizeof(found), &file_reads, &file_reads_shared, &key));
	return &found;
}

static void end(void)
{
	__u64 context[1] = { (__u64)&host.task };

	process_exit(context);
}

/* As many as the kernel has counted, with their bytes, and no window but has spoken for nearly all. */
static void test_windows_speak(void **state)
{
	begin();
	read_files(2);
	host.task.ioac.syscr += 5003;
	read_files(101);
	assert_int_equal(host_rates()->rested_reads, 5003);
	assert_int_equal(host_rates()->reads, 103);
	assert_int_equal(sum()->calls + host_thread()->reads_rested, 103 + 5003);
	assert_int_equal(host_thread()->reads_rested, 0);
	assert_int_equal(sum()->rested, 5003);
	assert_int_equal(sum()->bytes, (103 + 5003) * BYTES);
	assert_lost_only(0, 0);
}

/* None speaks for most of them. */
static void test_none_speaks_for_all(void **state)
{
	begin();
	read_files(1);
	host.task.ioac.syscr += 16000;
	read_files(1);
	assert_int_equal(sum()->calls, 2 + 1000);
}

/* Before it is left: what rested until then is told, and nothing of what is unseen from then on. */
static void test_settled_before_it_is_left(void **state)
{
	begin();
	read_files(2);
	host.task.ioac.syscr += 5003;
	settle();
	settle();
	assert_int_equal(host_rates()->rested_reads, 5003);
	host.task.ioac.syscr += 977;
	reads_epoch++;
	read_files(101);
	assert_int_equal(sum()->calls + host_thread()->reads_rested, 103 + 5003);
	assert_int_equal(host_rates()->rested_reads, 5003);
	assert_lost_only(0, 0);
}

/* Watched again it is as ever: the read that begins is none that rested. */
static void test_settled_and_seen(void **state)
{
	begin();
	read_files(2);
	host.task.ioac.syscr += 331;
	settle();
	host.task.ioac.syscr += 7;
	read_files(101);
	assert_int_equal(host_rates()->rested_reads, 331 + 7);
	assert_int_equal(sum()->calls + host_thread()->reads_rested, 103 + 331 + 7);
}

/* Whose end was not seen has spoken for nobody, and is counted by the kernel. */
static void test_end_outside_of_the_window(void **state)
{
	begin();
	read_files(1);
	host.task.ioac.syscr += 1600;
	enter(FD);
	host.task.ioac.syscr += 1 + 97;
	calls_watched_ns = kernel.now_ns + 1;
	kernel.now_ns += 100;
	read_files(331);
	assert_int_equal(sum()->calls, 1 + 1600 + 1 + 97 + 331);
	assert_lost_only(0, 0);
}

/* Nor one that ends in a later window than it began in. */
static void test_end_in_another_window(void **state)
{
	begin();
	read_files(1);
	host.task.ioac.syscr += 1600;
	enter(FD);
	calls_watched_ns = kernel.now_ns + 1;
	kernel.now_ns += 100;
	leave(BYTES);
	read_files(331);
	assert_int_equal(sum()->calls, 1 + 1600 + 1 + 331);
	assert_lost_only(0, 0);
}

/* What it reads is no file: a socket's reads are of no interest, and nobody else's. */
static void test_reads_of_no_file(void **state)
{
	begin();
	enter(FD + 1);
	leave(BYTES);
	host.task.ioac.syscr += 1009;
	enter(FD + 1);
	leave(BYTES);
	assert_int_equal(host_thread()->passed, 0);
	assert_int_equal(host_rates()->rested_reads, 1009);
	assert_int_equal(host_rates()->reads, 0);
}

/* A thread that ends between two windows has gone on as before. */
static void test_threads_that_end(void **state)
{
	begin();
	read_files(3);
	host.task.ioac.syscr += 701;
	end();
	assert_int_equal(sum()->calls, 3 + 701);
	assert_int_equal(sum()->bytes, (3 + 701) * BYTES);
	assert_int_equal(sum()->rested, 701);
	assert_lost_only(0, 0);
	/* Of one that was never met nothing is known but how many there were. */
	begin();
	host.task.ioac.syscr = 97;
	end();
	assert_lost_only(LOST_READS_UNWATCHED, 97);
}

/* After a time in which reads were not watched for another reason, those are not known. */
static void test_other_gaps(void **state)
{
	begin();
	read_files(3);
	host.task.ioac.syscr += 701;
	reads_epoch++;
	read_files(3);
	assert_int_equal(host_rates()->rested_reads, 0);
	assert_int_equal(sum()->calls, 6);
}

/* While all are seen the kernel's count does not matter. */
static void test_none_rests_where_all_are_seen(void **state)
{
	begin();
	calls_rest = CALLS_ALL_SEEN;
	read_files(3);
	host.task.ioac.syscr += 701;
	read_files(3);
	end();
	assert_int_equal(host_rates()->rested_reads, 0);
	assert_int_equal(sum()->calls, 6);
	assert_int_equal(sum()->rested, 0);
	assert_lost_only(0, 0);
}

/* Those that wait for a device are told of: they are to be seen each. */
static void test_reads_that_wait(void **state)
{
	begin();
	enter(FD);
	host.task.nvcsw++;
	kernel.now_ns += 5000000;
	leave(BYTES);
	read_files(2);
	assert_in_range(host_rates()->waited_read_ns, 5000000, 5001000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows_speak),
		cmocka_unit_test(test_none_speaks_for_all),
		cmocka_unit_test(test_settled_before_it_is_left),
		cmocka_unit_test(test_settled_and_seen),
		cmocka_unit_test(test_end_outside_of_the_window),
		cmocka_unit_test(test_end_in_another_window),
		cmocka_unit_test(test_reads_of_no_file),
		cmocka_unit_test(test_threads_that_end),
		cmocka_unit_test(test_other_gaps),
		cmocka_unit_test(test_none_rests_where_all_are_seen),
		cmocka_unit_test(test_reads_that_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
