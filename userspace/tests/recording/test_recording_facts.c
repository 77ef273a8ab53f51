// SPDX-License-Identifier: GPL-2.0
/* Facts written to a recording are in its tables. */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glib.h>

#include "events/names.h"
#include "recording/recording.h"
#include "recordings.h"

static void test_same_key_sums(void **state)
{
	const struct fault_fact fault = { .pid = 42,
					  .fault_class = "zero",
					  .allocated_call = "",
					  .area = "heap",
					  .in_call = "",
					  .faults = 7,
					  .pages = 11,
					  .timed_faults = 3,
					  .timed_cpu_ns = 13,
					  .timed_cpu_us2 = 17,
					  .blocked_ns = 19 };
	const struct block_fact block = { .pid = 42,
					  .call = "malloc",
					  .stack_id = 5,
					  .made = 3,
					  .made_bytes = 3 * 4099,
					  .freed = 2,
					  .freed_bytes = 2 * 4099,
					  .never_used_bytes = 4096 };
	const struct map_call_fact map = {
		.pid = 42,
		.call = "mmap",
		.in_call = "",
		.stack_id = 5,
		.sum = { .calls = 5, .bytes = 7, .cpu_ns = 11, .failed = 1 }
	};
	const struct sample_fact sample = {
		.pid = 42,
		.place = "user",
		.in_call = "",
		.stack_id = 5,
		.allocated_call = "",
		.samples = 29,
		.area = "",
		.area_name = "",
	};
	struct recording *recording;
	char *path = in_directory("sums");
	int round, slice;

	(void)state;
	recording = recording_create(path, false);
	assert_non_null(recording);
	for (slice = 0; slice < 2; slice++) {
		assert_int_equal(recording_slice_begin(recording, 1), 0);
		for (round = 0; round < 2; round++) {
			add_call(recording, UINT64_MAX - 1, 23);
			assert_int_equal(recording_fault(recording, &fault), 0);
			assert_int_equal(recording_block(recording, &block), 0);
			assert_int_equal(recording_map_call(recording, &map), 0);
			assert_int_equal(recording_sample(recording, &sample), 0);
			assert_int_equal(recording_hit(recording, 42, "malloc", 31), 0);
			assert_int_equal(recording_loss(recording, "ring_block", 37), 0);
			assert_int_equal(add_counters(recording, 41, 43, 47), 0);
		}
		assert_int_equal(recording_slice_commit(recording, 2), 0);
	}
	assert_int_equal(recording_finish(recording), 0);
	recording_close(recording);
	assert_int_equal(number(path,
				"SELECT COUNT(*) FROM call WHERE calls = 46 AND bytes = 188554"
				" AND timed_calls = 46 AND nested_calls = 6 AND stack_id = -2"),
			 2);
	assert_int_equal(number(path,
				"SELECT COUNT(*) FROM fault WHERE faults = 14 AND pages = 22 AND"
				" timed_faults = 6 AND timed_cpu_ns = 26 AND timed_cpu_us2 = 34 AND"
				" blocked_ns = 38"),
			 2);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM block WHERE made = 6 AND freed = 4 AND"
				      " made_bytes = 24594 AND freed_bytes = 16396 AND"
				      " never_used_bytes = 8192"),
			 2);
	assert_int_equal(number(path,
				"SELECT COUNT(*) FROM map_call WHERE calls = 10 AND failed = 2 AND"
				" bytes = 14 AND cpu_ns = 22"),
			 2);
	assert_int_equal(number(path, "SELECT SUM(samples) FROM sample"), 4 * 29);
	assert_int_equal(number(path, "SELECT SUM(hits) FROM hit"), 4 * 31);
	assert_int_equal(number(path, "SELECT SUM(count) FROM loss"), 4 * 37);
	assert_int_equal(number(path, "SELECT SUM(cpu_ns) * 1000000 + SUM(minor_faults) * 1000 +"
				      " SUM(major_faults) FROM process_slice"),
			 4 * 41043047);
	g_free(path);
}

/* Two processes, one after the other; what the row says then. */
static void add_both(const struct process_fact *first, const struct process_fact *second,
		     const char *expected)
{
	char *path = in_directory("numbers"), *query;
	struct recording *recording = recording_create(path, true);

	assert_non_null(recording);
	assert_int_equal(recording_slice_begin(recording, 1), 0);
	assert_int_equal(recording_process(recording, first), 0);
	assert_int_equal(recording_process(recording, second), 0);
	assert_int_equal(recording_slice_commit(recording, 2), 0);
	assert_int_equal(recording_finish(recording), 0);
	recording_close(recording);
	query = g_strdup_printf("SELECT COUNT(*) FROM process WHERE comm = '%s'", expected);
	assert_int_equal(number(path, query), 1);
	g_free(query);
	unlink(path);
	g_free(path);
}

static void test_two_processes_of_one_number(void **state)
{
	struct process_fact seen = { .pid = 42,
				     .comm = "seen",
				     .command = "seen",
				     .executable = "/seen",
				     .start_ns = 7,
				     .role = "child" };
	struct process_fact brief = { .pid = 42,
				      .comm = "brief",
				      .command = "",
				      .executable = "",
				      .start_ns = 11,
				      .role = "child" };
	struct process_fact later = seen;

	(void)state;
	later.comm = "later";
	later.start_ns = 13;
	add_both(&seen, &later, "later");
	add_both(&brief, &seen, "seen");
	add_both(&seen, &brief, "seen");
	/* One that is not readable any more after its exec. */
	brief.start_ns = seen.start_ns;
	add_both(&seen, &brief, "brief");
}

static void test_processes_and_allocators(void **state)
{
	struct allocator_fact allocator = { .pid = 42,
					    .module = "/libc",
					    .kind = "glibc",
					    .version = "2.36",
					    .functions = "",
					    .refused = "",
					    .mmap_threshold_low = -1,
					    .mmap_threshold_high = -1,
					    .dynamic = -1,
					    .tunables = "" };
	char *path = in_directory("processes");
	struct recording *recording = recording_create(path, false);

	(void)state;
	assert_non_null(recording);
	assert_int_equal(recording_slice_begin(recording, 1), 0);
	add_process(recording, 42, "before");
	add_process(recording, 42, "after\xff\xfe");
	assert_int_equal(recording_process_end(recording, 42, 99, 9), 0);
	assert_int_equal(recording_allocator(recording, &allocator), 0);
	allocator.mmap_threshold_low = 131072;
	allocator.dynamic = 0;
	assert_int_equal(recording_allocator(recording, &allocator), 0);
	assert_int_equal(recording_price(recording, "malloc", 900.5, 400.25, 10), 0);
	assert_int_equal(recording_calibration(recording, "fault_ns", 700.5), 0);
	assert_int_equal(recording_system_counter(recording, "pgfault", -3), 0);
	assert_int_equal(recording_not_captured(recording, "swap.out", "why"), 0);
	assert_int_equal(recording_meta_int(recording, "start_ns", -5), 0);
	assert_int_equal(recording_slice_commit(recording, 2), 0);
	assert_int_equal(recording_finish(recording), 0);
	recording_close(recording);
	/* Bytes that are no UTF-8 became U+FFFD each. */
	assert_int_equal(number(path,
				"SELECT COUNT(*) FROM process WHERE comm = 'after' || char(65533, "
				"65533) AND start_ns = 7 AND end_ns = 99 AND exit_code = 9 AND"
				" parent_pid IS NULL"),
			 1);
	assert_int_equal(number(path,
				"SELECT COUNT(*) FROM allocator WHERE mmap_threshold_low = 131072"
				" AND mmap_threshold_high IS NULL AND dynamic = 0"),
			 1);
	assert_int_equal(number(path,
				"SELECT COUNT(*) FROM price, calibration WHERE hit_ns = 900.5 AND"
				" inside_ns = 400.25 AND value = 700.5"),
			 1);
	assert_int_equal(number(path, "SELECT value FROM system_counter"), -3);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM not_captured WHERE reason = 'why'"), 1);
	assert_int_equal(
		number(path, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'start_ns'"), -5);
	g_free(path);
}

/* Faults of one site in two files are two rows; what is not named is ''. */
static void test_areas(void **state)
{
	struct fault_fact fault = { .pid = 42,
				    .fault_class = "file_minor",
				    .allocated_call = "",
				    .area = "file",
				    .in_call = "",
				    .faults = 7 };
	struct fault_run_fact run = { .pid = 42, .fault_class = "zero", .pages = 3 };
	char *path = in_directory("areas");
	struct recording *recording = recording_create(path, false);

	(void)state;
	assert_non_null(recording);
	assert_int_equal(recording_slice_begin(recording, 1), 0);
	assert_int_equal(recording_fault(recording, &fault), 0);
	fault.area_name = "/srv/a";
	assert_int_equal(recording_fault(recording, &fault), 0);
	fault.area_name = "/srv/b";
	assert_int_equal(recording_fault(recording, &fault), 0);
	assert_int_equal(recording_fault(recording, &fault), 0);
	assert_int_equal(recording_fault_run(recording, &run), 0);
	run.allocated_call = "malloc";
	run.area = "arena";
	assert_int_equal(recording_fault_run(recording, &run), 0);
	assert_int_equal(recording_slice_commit(recording, 2), 0);
	assert_int_equal(recording_finish(recording), 0);
	recording_close(recording);
	assert_int_equal(number(path, "SELECT faults FROM fault WHERE area_name = ''"), 7);
	assert_int_equal(number(path, "SELECT faults FROM fault WHERE area_name = '/srv/a'"), 7);
	assert_int_equal(number(path, "SELECT faults FROM fault WHERE area_name = '/srv/b'"), 14);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM fault_run WHERE allocated_call = '' AND"
				      " area = ''"),
			 1);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM fault_run WHERE allocated_call ="
				      " 'malloc' AND area = 'arena'"),
			 1);
	/* Every class belongs to a toll, and only those that clear or copy write a page. */
	assert_int_equal(number(path, "SELECT COUNT(*) FROM fault_class WHERE toll = 'swap.in' AND"
				      " NOT writes_page"),
			 5);
	assert_int_equal(number(path,
				"SELECT COUNT(*) FROM fault_class WHERE class IN"
				" ('zero_mthp', 'reuse') AND writes_page = (class = 'zero_mthp')"),
			 2);
	for (unsigned int class = 0; class < FAULT_CLASSES; class ++) {
		char *asked = g_strdup_printf("SELECT COUNT(*) FROM fault_class WHERE class = '%s'"
					      " AND toll = 'zero.kernel' AND writes_page",
					      fault_class_name(class, false));

		assert_int_equal(number(path, asked), fault_clears(class));
		g_free(asked);
	}
	g_free(path);
}

static void test_sizes(void **state)
{
	struct process_slice_fact fact = {
		.pid = 42, .cpu_ns = 3, .rss_bytes = 1009 * 4096, .swap_bytes = 0
	};
	char *path = in_directory("sizes");
	struct recording *recording = recording_create(path, false);

	(void)state;
	assert_non_null(recording);
	assert_int_equal(recording_slice_begin(recording, 1), 0);
	assert_int_equal(recording_process_slice(recording, &fact), 0);
	/* Gauges are replaced, not summed; what is unknown replaces nothing. */
	fact.rss_bytes = -1;
	fact.swap_bytes = 4096;
	assert_int_equal(recording_process_slice(recording, &fact), 0);
	assert_int_equal(recording_slice_commit(recording, 2), 0);
	assert_int_equal(recording_slice_begin(recording, 2), 0);
	assert_int_equal(add_counters(recording, 5, 0, 0), 0);
	assert_int_equal(recording_slice_commit(recording, 3), 0);
	assert_int_equal(recording_finish(recording), 0);
	recording_close(recording);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM process_slice WHERE slice = 1 AND"
				      " cpu_ns = 6 AND rss_bytes = 4132864 AND swap_bytes = 4096"),
			 1);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM process_slice WHERE slice = 2 AND"
				      " cpu_ns = 5 AND rss_bytes IS NULL AND swap_bytes IS NULL"),
			 1);
	g_free(path);
}

/* Rows that describe a state: the last word counts. */
static void test_states(void **state)
{
	struct memory_cgroup_fact group = { .path = "/box",
					    .version = 2,
					    .limit_bytes = 83886080,
					    .limit_path = "/",
					    .swap_limit_bytes = 0,
					    .usage_bytes = 7,
					    .peak_bytes = 11,
					    .file_bytes = 5,
					    .beside_bytes = 3 };
	struct swap_device_fact device = {
		.path = "/swap", .kind = "file", .size_bytes = 1009, .priority = -2, .type = -1
	};
	struct access_fact site = { .pid = 42,
				    .call = "mmap",
				    .allocated_stack = UINT64_MAX,
				    .first_pages = 3,
				    .first_sequential_pages = 2,
				    .in_pages = 13,
				    .in_sequential_pages = 11,
				    .distinct_pages = 5,
				    .max_returns = 7,
				    .untracked_pages = 1 };
	const struct access_fact area = {
		.pid = 42, .area = "file", .area_name = "/srv/a", .first_pages = 17
	};
	char *path = in_directory("states");
	struct recording *recording = recording_create(path, false);

	(void)state;
	assert_non_null(recording);
	assert_int_equal(recording_slice_begin(recording, 1), 0);
	assert_int_equal(recording_process_cgroup(recording, 42, "/nobody"), 0);
	add_process(recording, 42, "program");
	assert_int_equal(recording_process_cgroup(recording, 42, "/first"), 0);
	assert_int_equal(recording_process_cgroup(recording, 42, "/box"), 0);
	add_process(recording, 42, "after exec");
	assert_int_equal(recording_memory_cgroup(recording, &group), 0);
	group.limit_bytes = group.swap_limit_bytes = group.usage_bytes = group.peak_bytes = -1;
	group.limit_path = NULL;
	group.path = "/free";
	assert_int_equal(recording_memory_cgroup(recording, &group), 0);
	assert_int_equal(recording_memory_cgroup_counter(recording, "/box", "pswpin", 101), 0);
	assert_int_equal(recording_memory_cgroup_counter(recording, "/box", "pswpin", 103), 0);
	assert_int_equal(recording_swap_device(recording, &device), 0);
	device.type = 0;
	assert_int_equal(recording_swap_device(recording, &device), 0);
	assert_int_equal(recording_access(recording, &area), 0);
	assert_int_equal(recording_access(recording, &site), 0);
	site.in_pages = 19;
	assert_int_equal(recording_access(recording, &site), 0);
	assert_int_equal(recording_slice_commit(recording, 2), 0);
	assert_int_equal(recording_finish(recording), 0);
	recording_close(recording);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM process WHERE memory_cgroup = '/box'"
				      " AND comm = 'after exec'"),
			 1);
	assert_int_equal(number(path,
				"SELECT COUNT(*) FROM memory_cgroup WHERE path = '/box' AND"
				" version = 2 AND limit_bytes = 83886080 AND limit_path = '/' AND"
				" swap_limit_bytes = 0 AND usage_bytes = 7 AND peak_bytes = 11"
				" AND file_bytes = 5 AND beside_bytes = 3"),
			 1);
	assert_int_equal(number(path,
				"SELECT COUNT(*) FROM memory_cgroup WHERE path = '/free' AND"
				" COALESCE(limit_bytes, limit_path, swap_limit_bytes, usage_bytes,"
				" peak_bytes) IS NULL"),
			 1);
	assert_int_equal(number(path, "SELECT value FROM memory_cgroup_counter"), 103);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM swap_device WHERE kind = 'file' AND"
				      " size_bytes = 1009 AND priority = -2 AND type = 0"),
			 1);
	assert_int_equal(number(path,
				"SELECT COUNT(*) FROM access WHERE pid = 42 AND call = 'mmap'"
				" AND allocated_stack = -1 AND area = '' AND area_name = '' AND"
				" first_pages = 3 AND first_sequential_pages = 2 AND in_pages = 19"
				" AND in_sequential_pages = 11 AND distinct_pages = 5 AND"
				" max_returns = 7 AND untracked_pages = 1"),
			 1);
	assert_int_equal(number(path,
				"SELECT COUNT(*) FROM access WHERE call = '' AND"
				" allocated_stack = 0 AND area = 'file' AND area_name = '/srv/a'"
				" AND first_pages = 17"),
			 1);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM access"), 2);
	g_free(path);
}

static void test_stacks_once(void **state)
{
	struct frame frame = { .function = "f",
			       .module = "/m",
			       .file = "f.c",
			       .line = 3,
			       .kind = FRAME_NATIVE,
			       .build_id = "00",
			       .module_offset = 16 };
	const uint64_t id = 0xffffffff00000001;
	char *path = in_directory("stacks");
	struct recording *recording = recording_create(path, false);
	int round;

	(void)state;
	assert_non_null(recording);
	assert_int_equal(recording_slice_begin(recording, 1), 0);
	assert_false(recording_has_stack(recording, id));
	for (round = 0; round < 2; round++) {
		assert_int_equal(recording_stack(recording, id, 42, "fp", true, ""), 0);
		assert_int_equal(recording_stack_frame(recording, id, 0, UINT64_MAX, &frame, false),
				 0);
		assert_int_equal(recording_stack_frame(recording, id, 1, 32, &frame, true), 0);
	}
	assert_true(recording_has_stack(recording, id));
	frame.line = 4;
	assert_int_equal(recording_stack_frame(recording, id, 2, 48, &frame, false), 0);
	assert_int_equal(recording_slice_commit(recording, 2), 0);
	assert_int_equal(recording_finish(recording), 0);
	recording_close(recording);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM stack WHERE stack_id = -4294967295"),
			 1);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM stack_frame"), 3);
	assert_int_equal(number(path, "SELECT COUNT(*) FROM frame WHERE kind = 'native'"), 2);
	assert_int_equal(number(path, "SELECT address FROM stack_frame WHERE depth = 0"), -1);
	g_free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_key_sums),
		cmocka_unit_test(test_two_processes_of_one_number),
		cmocka_unit_test(test_processes_and_allocators),
		cmocka_unit_test(test_areas),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_stacks_once),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
