// SPDX-License-Identifier: GPL-2.0
/* When faults are timed: the first window whole, then four times a second, as long as is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "budget/fault_window.h"

#define MS 1000000ULL
#define SECOND (1000 * MS)
#define START (7 * SECOND)

/* What windows of a second took, stepped at every edge. lots: from 0 to 1, one after the other. */
struct second {
	unsigned int windows;
	unsigned int timed;
	uint64_t open_ns;
	uint64_t shortest_gap_ns;
	uint64_t longest_gap_ns;
};

static void run_second(struct fault_window *window, uint64_t *now, struct second *second)
{
	uint64_t end = *now + SECOND, opened_ns = 0;
	double lot = 0.0;

	*second = (struct second){ .shortest_gap_ns = UINT64_MAX };
	while (*now < end) {
		bool was = window->open;

		fault_window_step(window, *now, 0, lot);
		lot = lot > 0.8 ? 0.0 : lot + 0.17;
		assert_true(window->open != was || *now < window->edge_ns);
		if (window->open && !was) {
			uint64_t gap = opened_ns ? *now - opened_ns : 0;

			if (gap && gap < second->shortest_gap_ns)
				second->shortest_gap_ns = gap;
			if (gap > second->longest_gap_ns)
				second->longest_gap_ns = gap;
			opened_ns = *now;
			second->windows++;
			second->timed += window->timed;
			second->open_ns += window->edge_ns - *now;
		}
		*now = window->edge_ns;
	}
}

#define CALIBRATED 70001 /* faults that were none of the targets' */

/* A window that has had its first and a slice with so many faults in a second. */
static uint64_t after_first(struct fault_window *window, uint64_t faults)
{
	fault_window_begin(window, START, CALIBRATED);
	fault_window_step(window, START + MS, 100 * MS, 0.5);
	fault_window_slice(window, START + SECOND, CALIBRATED + faults);
	return START + SECOND;
}

static void test_first_is_of_cpu_time(void **state)
{
	struct fault_window window;

	(void)state;
	fault_window_begin(&window, START, CALIBRATED);
	assert_true(window.open);
	fault_window_step(&window, START + SECOND, 100 * MS - 1, 0.5);
	assert_true(window.open && window.first);
	fault_window_step(&window, START + SECOND + MS, 100 * MS, 0.5);
	assert_false(window.open || window.first);
	assert_int_equal(window.edge_ns, START + SECOND + MS + 250 * MS);
}

/* Of targets that sleep: everybody else pays for it. */
static void test_first_ends(void **state)
{
	struct fault_window window;

	(void)state;
	fault_window_begin(&window, START, CALIBRATED);
	fault_window_step(&window, START + 2 * SECOND - 1, 0, 0.5);
	assert_true(window.open && window.first);
	fault_window_step(&window, START + 2 * SECOND, 0, 0.5);
	assert_false(window.open || window.first);
}

static void test_few_faults_have_the_longest(void **state)
{
	struct fault_window window;
	struct second second;
	uint64_t now = after_first(&window, 0);

	(void)state;
	run_second(&window, &now, &second);
	assert_in_range(second.windows, 3, 6);
	assert_int_equal(second.open_ns, second.windows * 25 * MS);
	assert_in_range(second.shortest_gap_ns, 125 * MS, 250 * MS);
	assert_in_range(second.longest_gap_ns, 250 * MS, 375 * MS);
}

static void test_length_goes_by_the_slice_before(void **state)
{
	struct fault_window window;
	struct second second;
	uint64_t now = after_first(&window, 50000);

	(void)state;
	run_second(&window, &now, &second);
	assert_int_equal(second.open_ns, second.windows * 5 * MS);
	/* A storm: no shorter than a millisecond, since to open and close costs, too. */
	fault_window_slice(&window, now, CALIBRATED + 50000 + 5000000);
	run_second(&window, &now, &second);
	assert_in_range(second.open_ns, (second.windows - 1) * MS, second.windows * MS + MS);
	/* It is over. */
	fault_window_slice(&window, now, CALIBRATED + 50000 + 5000000 + 1);
	run_second(&window, &now, &second);
	assert_in_range(second.open_ns, (second.windows - 1) * 25 * MS, second.windows * 25 * MS);
}

/* Faults are seen in them only: more of them, shorter. */
static void test_resting(void **state)
{
	struct fault_window window;
	struct second second;
	uint64_t now = after_first(&window, 50000);

	(void)state;
	window.rests = true;
	run_second(&window, &now, &second);
	assert_in_range(second.windows, 12, 20);
	fault_window_slice(&window, now, CALIBRATED + 50000 + 50000);
	run_second(&window, &now, &second);
	assert_in_range(second.windows, 12, 20);
	/* Of four one is four times as long. The second before was a little more than one. */
	assert_in_range(second.open_ns, (second.windows + 3 * second.timed) * 5 * MS / 4,
			(second.windows + 3 * second.timed) * 11 * MS / 8);
	assert_in_range(second.longest_gap_ns, 62 * MS, 94 * MS);
	assert_in_range(second.timed, second.windows / 4, second.windows / 4 + 1);
	/* They do not rest any more. */
	window.rests = false;
	fault_window_slice(&window, now, CALIBRATED + 50000 + 50000 + 50000);
	run_second(&window, &now, &second);
	assert_in_range(second.windows, 3, 6);
	assert_int_equal(second.timed, second.windows);
}

static void test_late_steps(void **state)
{
	struct fault_window window;
	uint64_t now = after_first(&window, 0);

	(void)state;
	fault_window_step(&window, now, 0, 0.5);
	assert_true(window.open);
	/* Closed a second late: the next is no sooner for that, and those missed do not come. */
	fault_window_step(&window, now + SECOND, 0, 0.5);
	assert_false(window.open);
	assert_int_equal(window.edge_ns, now + SECOND + 250 * MS);
	/* It opened late: it is no shorter. */
	fault_window_step(&window, now + SECOND + 330 * MS, 0, 0.5);
	assert_true(window.open);
	assert_int_equal(window.edge_ns, now + SECOND + 355 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_is_of_cpu_time),
		cmocka_unit_test(test_first_ends),
		cmocka_unit_test(test_few_faults_have_the_longest),
		cmocka_unit_test(test_length_goes_by_the_slice_before),
		cmocka_unit_test(test_resting),
		cmocka_unit_test(test_late_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
