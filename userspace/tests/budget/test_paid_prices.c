// SPDX-License-Identifier: GPL-2.0
/* What hits cost in the targets: as far as their programs were timed there, and the ways in and out. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "budget/paid_prices.h"

static const struct calibration_result prices = {
	.fault = { .hit_ns = 100 },
	.fault_begin_ns = 40,
	.read = { .hit_ns = 1000 },
	.read_program_ns = 800,
	.map = { .hit_ns = 400 },
	.map_program_ns = 250,
};

static const struct memtoll_rates none;

static void assert_near(double seen, double expected)
{
	if (fabs(seen - expected) > 1e-6 * fabs(expected))
		fail_msg("%f, not %f", seen, expected);
}

/* So many faults that were passed over, whose programs took so long. */
static double outside_ns(uint64_t faults, uint64_t each_ns)
{
	struct paid_prices paid = paid_prices_of(&prices);
	struct memtoll_rates rates = {
		.passed_faults = faults,
		.least_fault_ns = faults * each_ns,
	};

	return paid_fault_outside_ns(&paid, &none, &rates);
}

/* Where the least program takes twice as long as in the calibration, so do the ways. */
static void test_ways_are_as_cold_as_programs(void **state)
{
	(void)state;
	assert_near(outside_ns(10007, 40), 60);
	assert_near(outside_ns(10007, 80), 120);
	/* Never less than calibrated, nor more than can be believed; and of few nothing is known. */
	assert_near(outside_ns(10007, 20), 60);
	assert_near(outside_ns(10007, 4000), 240);
	assert_near(outside_ns(97, 80), 60);
	assert_near(outside_ns(0, 0), 60);
}

static void test_least_of_a_fault(void **state)
{
	struct paid_prices paid = paid_prices_of(&prices);
	struct memtoll_rates rates = { .ordered_faults = 10007, .least_fault_ns = 10007 * 80 };

	(void)state;
	assert_near(paid_least_fault_ns(&paid, &none, &rates), 80 + 120);
	assert_near(paid_least_fault_ns(&paid, &none, &none), 40 + 60);
}

/* Those that were looked at cost no less than calibrated, those that were passed over what they do. */
static void test_maps(void **state)
{
	struct paid_prices paid = paid_prices_of(&prices);
	struct memtoll_rates rates = {
		.maps = 1009,
		.passed_maps = 1000,
		.map_ns = 9 * 700,
		.passed_map_ns = 1000 * 150,
	};

	(void)state;
	assert_near(paid_maps_ns(&paid, &none, &rates), 9 * 700 + 1000 * 150 + 1009 * 150);
	rates.map_ns = 0;
	assert_near(paid_maps_ns(&paid, &none, &rates), 9 * 250 + 1000 * 150 + 1009 * 150);
}

/* Of faults that rest nobody pays. */
static void test_resting_faults_are_free(void **state)
{
	struct paid_prices paid = paid_prices_of(&prices);
	struct memtoll_rates rates = { .rested_faults = 100003, .passed_open = 100003 };

	(void)state;
	assert_near(paid_fixed_ns(&paid, &none, &none, &rates), 0);
	rates.faults = 1;
	rates.fault_ns = 300;
	assert_near(paid_fixed_ns(&paid, &none, &none, &rates), 1.4 * (300 + 60));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ways_are_as_cold_as_programs),
		cmocka_unit_test(test_least_of_a_fault),
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_resting_faults_are_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
