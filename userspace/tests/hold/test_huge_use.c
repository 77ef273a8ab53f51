// SPDX-License-Identifier: GPL-2.0
/* test_huge_use.c: what is said of all huge pages by those that were looked at. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glib.h>

#include "hold/huge_use.h"

#define HALF (HUGE_BYTES / 2)

static struct huge_use estimate(uint64_t pages, const uint64_t *zero, uint64_t count)
{
	struct huge_use use = { .pages = pages };

	huge_use_estimate(&use, zero, count);
	assert_true(use.low <= use.zero && use.zero <= use.high);
	assert_true(use.high <= pages * HUGE_BYTES);
	return use;
}

static void all_of_them_have_no_bounds(void **state)
{
	static const uint64_t zero[] = { 0, HUGE_BYTES, HALF };
	struct huge_use use = estimate(3, zero, 3);

	(void)state;
	assert_true(use.known);
	assert_int_equal(use.zero, HUGE_BYTES + HALF);
	assert_int_equal(use.low, use.zero);
	assert_int_equal(use.high, use.zero);
}

static void some_have_bounds_by_their_spread(void **state)
{
	static const uint64_t zero[] = { 0, HUGE_BYTES, 0, HUGE_BYTES };
	struct huge_use use = estimate(40, zero, 4);
	/* s = 1 / sqrt(3) of a page; 1.96 * 40 * s / 2 * sqrt(1 - 4 / 40) */
	double error = 1.96 * 40 * 0.5773503 / 2 * sqrt(0.9) * HUGE_BYTES;

	(void)state;
	assert_int_equal(use.zero, 20 * HUGE_BYTES);
	assert_true(fabs((double)use.high - (double)use.zero - MIN(error, 20.0 * HUGE_BYTES)) < 64);
	assert_true(fabs((double)use.zero - (double)use.low - MIN(error, 20.0 * HUGE_BYTES)) < 64);
}

static void alike_ones_have_none(void **state)
{
	static const uint64_t zero[] = { HALF, HALF, HALF };
	struct huge_use use = estimate(1000, zero, 3);

	(void)state;
	assert_int_equal(use.zero, 1000 * HALF);
	assert_int_equal(use.low, use.high);
}

static void one_tells_nothing_of_others(void **state)
{
	static const uint64_t zero[] = { HALF };
	struct huge_use use = estimate(2, zero, 1);

	(void)state;
	assert_int_equal(use.low, 0);
	assert_int_equal(use.high, 2 * HUGE_BYTES);
	use = estimate(1, zero, 1);
	assert_int_equal(use.low, HALF);
	assert_int_equal(use.high, HALF);
	use = estimate(2, zero, 0);
	assert_false(use.known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_them_have_no_bounds),
		cmocka_unit_test(some_have_bounds_by_their_spread),
		cmocka_unit_test(alike_ones_have_none),
		cmocka_unit_test(one_tells_nothing_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
