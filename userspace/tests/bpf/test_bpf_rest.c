// SPDX-License-Identifier: GPL-2.0
/* Faults that rest: no program sees them, the kernel counts them, and those in windows speak for them. */
#include "tests/bpf/memory.h"

#define AREA_START 0x7f1200000000ULL
#define AREA_PAGES 4096
#define AT(page) (AREA_START + (page)*MEMTOLL_PAGE_SIZE)
#define IP 0x401136ULL

static struct vm_area_struct area;
static struct signal_struct signals;

static void begin(void)
{
	host_begin();
	fault_draw = ~0U;
	faults_rest = FAULTS_REST;
	tables_begin(4);
	add_area(&area, AREA_START, AT(AREA_PAGES), 0);
	/* So that each fault finds the last table, and is no candidate for a huge page. */
	set_entry(AREA_START, 1, 0);
	signals.live.counter = 1;
	host.task.signal = &signals;
	host.task.min_flt = 31; /* a new thread's, unseen */
}

/* The begin of a write, and the page that the kernel maps. */
static void write_to(__u64 page)
{
	fault_at(AT(page) + 0x18, IP, WRITES);
	set_entry(AT(page), 1, page_entry(0x50000 + page));
}

/* A write in a window: begin and end are seen, and the kernel counts it. */
static void touch(__u64 page)
{
	ends_seen = 1;
	write_to(page);
	kernel.now_ns += 1000;
	host.task.min_flt++;
	fault_end_minor(NULL);
	ends_seen = 0;
}

/* Pages in no order: 1009 and 331 are primes. */
static void scatter(__u64 from, __u64 count)
{
	for (__u64 i = from; i < from + count; i++)
		touch(1 + i * 331 % 1009);
}

/* Of the test's process, in all of its runs. */
static __u64 spoken_for(__u64 faults)
{
	__u64 seen = 0, spoken = 0;
	struct memtoll_run run;

	drain();
	while (seen < faults) {
		run = next_run();
		seen += run.faults;
		spoken += run.passed;
	}
	assert_int_equal(seen, faults);
	return spoken;
}

static __u64 waiting(__u32 tgid)
{
	return rest_owners[tgid & (REST_POOLS - 1)] == tgid ? rest_pools[tgid & (REST_POOLS - 1)] :
							      0;
}

/* All are spoken for, each by a part, and what is left by those to come. */
static void test_windows_speak(void **state)
{
	begin();
	scatter(0, 2);
	assert_int_equal(host_rates()->rested_faults, 31);
	host.task.min_flt += 5003;
	scatter(2, 211);
	assert_int_equal(host_rates()->faults, 213);
	assert_int_equal(host_rates()->rested_faults, 31 + 5003);
	assert_int_equal(host_rates()->passed_faults, 0);
	assert_int_equal(spoken_for(213) + waiting(TGID), 31 + 5003);
	/* (1023 / 1024)^211 are left. */
	assert_in_range(waiting(TGID), 5034 * 80 / 100, 5034 * 85 / 100);
	assert_int_equal(rest_open, 0);
	assert_lost_only(0, 0);
}

/* A fault that only follows the one before speaks like any other. */
static void test_faults_in_order_speak(void **state)
{
	__u64 page;

	begin();
	scatter(0, 1);
	host.task.min_flt += 5003;
	for (page = 3; page < 3 + 211; page++) {
		write_to(page);
		host.task.min_flt++;
	}
	assert_int_equal(spoken_for(212) + waiting(TGID), 31 + 5003);
	assert_in_range(host_rates()->ordered_faults, 211 * 14 / 16, 211);
	assert_in_range(waiting(TGID), 0, 5034 * 85 / 100);
}

/* Nobody speaks for another process's, and a second one in the same place has none of its own. */
static void test_each_speaks_for_its_own(void **state)
{
	__u64 others;

	begin();
	scatter(0, 1);
	host.task.min_flt += 5003;
	scatter(1, 1);
	rest_owners[(TGID + 1) & (REST_POOLS - 1)] = TGID + 1;
	rest_pools[(TGID + 1) & (REST_POOLS - 1)] = 70001;
	scatter(2, 1009);
	assert_int_equal(waiting(TGID + 1), 70001);
	begin();
	rest_owners[TGID & (REST_POOLS - 1)] = TGID + REST_POOLS;
	rest_pools[TGID & (REST_POOLS - 1)] = 70001;
	scatter(0, 1);
	host.task.min_flt += 5003;
	scatter(1, 211);
	others = rest_open;
	assert_int_equal(rest_pools[TGID & (REST_POOLS - 1)], 70001);
	assert_int_equal(others, 31 + 5003);
	assert_int_equal(spoken_for(212), 0);
}

/* Once they do not rest any more none speaks: userspace takes what is left. */
static void test_what_a_rest_leaves(void **state)
{
	begin();
	scatter(0, 1);
	host.task.min_flt += 100003;
	faults_rest = FAULTS_HAVE_RESTED;
	scatter(1, 7001);
	assert_int_equal(waiting(TGID), 100003 + 31);
	assert_int_equal(spoken_for(7002), 0);
}

/* Of a process that was hardly seen others speak: userspace says which. */
static void test_processes_that_end_unseen(void **state)
{
	__u64 context[1] = { (__u64)&host.task };

	begin();
	signals.live.counter = 0;
	scatter(0, REST_SEEN_ENOUGH - 1);
	host.task.min_flt += 5003;
	process_exit(context);
	assert_int_equal(rest_owners[TGID & (REST_POOLS - 1)], 0);
	assert_in_range(rest_open, 5003, 5034);
	begin();
	signals.live.counter = 0;
	scatter(0, REST_SEEN_ENOUGH + 1);
	host.task.min_flt += 5003;
	process_exit(context);
	assert_int_equal(rest_open, 0);
	assert_in_range(waiting(TGID), 5003, 5034);
}

/* While all are seen, what the kernel counts besides is no fault that rested. */
static void test_none_rests_where_all_are_seen(void **state)
{
	begin();
	faults_rest = FAULTS_ALL_SEEN;
	scatter(0, 2);
	host.task.min_flt += 97;
	scatter(2, 2);
	assert_int_equal(host_rates()->rested_faults, 0);
	assert_int_equal(waiting(TGID) + rest_open, 0);
}

/* Its end is seen, its begin was not: nothing is known of its time, and it is not the open one. */
static void test_end_without_begin(void **state)
{
	struct memtoll_run run;

	begin();
	ends_seen = 1;
	write_to(7);
	host.task.min_flt += 12;
	kernel.now_ns += 3701000;
	fault_end_minor(NULL);
	assert_int_equal(host_thread()->fault.active, 1);
	drain();
	run = next_run();
	assert_int_equal(run.faults, 1);
	assert_int_equal(run.timed_faults, 0);
	assert_lost_only(0, 0);
}

/* A major one that rested is told as lost, and what was open before was none. */
static void test_major_that_rested(void **state)
{
	struct memtoll_run run;

	begin();
	write_to(7);
	host.task.min_flt++;
	host.task.maj_flt++;
	fault_end_major(NULL);
	assert_lost_only(LOST_FAULTS_PASSED, 1);
	assert_int_equal(host_rates()->waited_faults, 1);
	drain();
	run = next_run();
	assert_int_equal(run.flags & RUN_MAJOR, 0);
	/* It is none of those that the kernel counts as minor. */
	scatter(11, 1);
	assert_int_equal(host_rates()->rested_faults, 31);
}

/* Nor is one of a thread that was never met. */
static void test_major_of_a_new_thread(void **state)
{
	begin();
	host.task.maj_flt++;
	fault_end_major(NULL);
	assert_lost_only(LOST_FAULTS_PASSED, 1);
	assert_int_equal(host_rates()->waited_faults, 1);
	scatter(11, 1);
	assert_int_equal(host_rates()->rested_faults, 31);
}

/* A tracer that was stopped in a window does not have all faults looked at until it goes on. */
static void test_stopped_tracer(void **state)
{
	begin();
	scatter(0, 1);
	fault_draw = ~0U / 8;
	timed_until_ns = kernel.now_ns;
	timed_shut_ns = timed_until_ns + 1;
	scatter(1, 1009);
	assert_in_range(host_rates()->faults, 1009 / 8 - 3, 1009 / 8 + 5);
	assert_int_equal(host_rates()->faults + host_rates()->passed_faults, 1010);
}

/* One whose begin was seen is itself, also while others rest. */
static void test_major_in_a_window(void **state)
{
	struct memtoll_run run;

	begin();
	ends_seen = 1;
	write_to(7);
	kernel.now_ns += 3701;
	host.task.maj_flt++;
	fault_end_major(NULL);
	ends_seen = 0;
	drain();
	run = next_run();
	assert_int_equal(run.flags & RUN_MAJOR, RUN_MAJOR);
	assert_int_equal(run.timed_faults, 1);
	host.task.min_flt += 3;
	scatter(11, 1);
	assert_int_equal(host_rates()->rested_faults, 31 + 3);
}

/* Threads that end between two windows, whether they were met or not. */
static void test_threads_that_end(void **state)
{
	__u64 context[1] = { (__u64)&host.task };

	begin();
	process_exit(context);
	assert_int_equal(host_rates()->rested_faults, 31);
	begin();
	scatter(0, 1);
	host.task.min_flt += 97;
	process_exit(context);
	assert_int_equal(host_rates()->rested_faults, 31 + 97);
	assert_int_equal(host_rates()->faults, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows_speak),
		cmocka_unit_test(test_faults_in_order_speak),
		cmocka_unit_test(test_each_speaks_for_its_own),
		cmocka_unit_test(test_what_a_rest_leaves),
		cmocka_unit_test(test_processes_that_end_unseen),
		cmocka_unit_test(test_none_rests_where_all_are_seen),
		cmocka_unit_test(test_end_without_begin),
		cmocka_unit_test(test_major_that_rested),
		cmocka_unit_test(test_major_of_a_new_thread),
		cmocka_unit_test(test_stopped_tracer),
		cmocka_unit_test(test_major_in_a_window),
		cmocka_unit_test(test_threads_that_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
