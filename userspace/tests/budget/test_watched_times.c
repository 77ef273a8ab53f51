// SPDX-License-Identifier: GPL-2.0
/* How a process's CPU time is divided by the windows it fell into. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "budget/watched_times.h"

#define MS 1000000ULL
#define PAIR (1U << GROUP_PAIR)
#define CALLOC (1U << GROUP_CALLOC)
#define START (700 * MS)

/* malloc is watched in [700, 710) ms and from 730 ms on, calloc always. */
static struct watched_times *windows(void)
{
	struct watched_times *times = watched_times_new();

	watched_times_change(times, START, PAIR | CALLOC);
	watched_times_change(times, START + 10 * MS, CALLOC);
	watched_times_change(times, START + 30 * MS, PAIR | CALLOC);
	return times;
}

static void expect(const struct watched_times *times, pid_t pid, uint64_t cpu_ns, uint64_t pair_ns,
		   unsigned int pair_windows)
{
	const struct watched_time *pair = watched_times_of(times, pid, GROUP_PAIR);
	const struct watched_time *calloc = watched_times_of(times, pid, GROUP_CALLOC);

	assert_non_null(pair);
	assert_int_equal(pair->cpu_ns, cpu_ns);
	assert_int_equal(pair->watched_ns, pair_ns);
	assert_int_equal(pair->windows, pair_windows);
	assert_int_equal(calloc->cpu_ns, cpu_ns);
	assert_int_equal(calloc->watched_ns, cpu_ns);
	assert_true(calloc->windows >= 1 && calloc->windows <= 2);
}

static void test_time_goes_by_what_was_watched_meanwhile(void **state)
{
	struct watched_times *times = windows();

	(void)state;
	/* In windows, between them, across both edges, and where it did nothing. */
	watched_times_read(times, 7, START, START + 10 * MS, 3 * MS);
	watched_times_read(times, 7, START, START + 30 * MS, 8 * MS);
	watched_times_read(times, 7, START, START + 40 * MS, 15 * MS);
	watched_times_read(times, 7, START, START + 50 * MS, 15 * MS);
	watched_times_read(times, 11, START + 5 * MS, START + 45 * MS, 16 * MS);
	watched_times_end_slice(times);
	expect(times, 7, 15 * MS, 10 * MS, 2);
	expect(times, 11, 16 * MS, 8 * MS, 1);
	watched_times_free(times);
}

/* Read late, as its record comes late: as of its end. */
static void test_a_short_life_goes_by_when_it_was(void **state)
{
	struct watched_times *times = windows();

	(void)state;
	watched_times_read(times, 7, START + 2 * MS, START + 9 * MS, 5 * MS);
	watched_times_read(times, 11, START + 12 * MS, START + 29 * MS, 5 * MS);
	/* No longer than a tick of the clock. */
	watched_times_read(times, 13, START + 4 * MS, START + 4 * MS, MS);
	watched_times_read(times, 17, START + 10 * MS, START + 10 * MS, MS);
	/* Begun before anything is known. */
	watched_times_read(times, 19, 0, START + 10 * MS, 2 * MS);
	/* Its end is read after it was looked for, and had gone. */
	watched_times_read(times, 23, START + 2 * MS, START + 5 * MS, MS);
	watched_times_read(times, 23, START + 2 * MS, START + 25 * MS, MS);
	watched_times_read(times, 23, START + 2 * MS, START + 9 * MS, 3 * MS);
	watched_times_end_slice(times);
	expect(times, 23, 3 * MS, 3 * MS, 1);
	expect(times, 7, 5 * MS, 5 * MS, 1);
	expect(times, 11, 5 * MS, 0, 0);
	expect(times, 13, MS, MS, 1);
	expect(times, 17, MS, 0, 0);
	expect(times, 19, 2 * MS, 2 * MS, 1);
	watched_times_free(times);
}

static void test_slices_and_numbers_that_are_used_again(void **state)
{
	struct watched_times *times = windows();

	(void)state;
	watched_times_read(times, 7, START, START + 10 * MS, 3 * MS);
	watched_times_end_slice(times);
	expect(times, 7, 3 * MS, 3 * MS, 1);
	watched_times_read(times, 7, START, START + 20 * MS, 5 * MS);
	/* Another process: it begins at nothing. */
	watched_times_read(times, 7, START + 31 * MS, START + 33 * MS, MS);
	watched_times_end_slice(times);
	/* What was not written is added up. */
	expect(times, 7, 6 * MS, 4 * MS, 2);
	/* Nobody has read it any more. */
	watched_times_end_slice(times);
	assert_null(watched_times_of(times, 7, GROUP_PAIR));
	watched_times_free(times);
}

/* Of more changes than are kept the first are forgotten. */
static void test_many_windows(void **state)
{
	struct watched_times *times = watched_times_new();
	uint64_t i;

	(void)state;
	for (i = 0; i < 1009; i++)
		watched_times_change(times, START + i * MS, i % 2 ? CALLOC : PAIR | CALLOC);
	watched_times_read(times, 7, START + 908 * MS, START + 1008 * MS, 10 * MS);
	watched_times_end_slice(times);
	expect(times, 7, 10 * MS, 5 * MS, 1);
	watched_times_free(times);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time_goes_by_what_was_watched_meanwhile),
		cmocka_unit_test(test_a_short_life_goes_by_when_it_was),
		cmocka_unit_test(test_slices_and_numbers_that_are_used_again),
		cmocka_unit_test(test_many_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
