// SPDX-License-Identifier: GPL-2.0
/* Which processes of a command are held where very many start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "budget/starts_paid.h"
#include "targets/storm.h"

#define MS 1000000ULL
#define BEGIN (7000 * MS)

/* How many of these are no part of a storm. */
static int held(struct storm *storm, uint64_t *now, int count, uint64_t apart_ns)
{
	int held = 0;

	for (int i = 0; i < count; i++, *now += apart_ns) {
		held += !storm_is_on(storm, *now);
		storm_started(storm, *now);
	}
	return held;
}

static void test_a_shell_loop_is_none(void **state)
{
	struct storm storm = { .every_ns = starts_paid_every_ns(0.05) };
	uint64_t now = BEGIN;

	(void)state;
	assert_int_equal(held(&storm, &now, 9973, 1000 * MS / 30), 9973);
}

static void test_a_burst_and_then_few(void **state)
{
	struct storm storm = { .every_ns = 25 * MS };
	uint64_t now = BEGIN;
	int samples = 0;

	(void)state;
	/* Some more than a burst, for what is paid for meanwhile. */
	assert_in_range(held(&storm, &now, 9973, MS), 256, 270);
	for (int i = 0; i < 1000; i++, now += MS)
		samples += storm_takes_sample(&storm, now);
	assert_int_equal(samples, 10);
	/* It is over, and some time later another burst is held. */
	assert_false(storm_is_on(&storm, now + 1000 * MS));
	now += 60000 * MS;
	assert_in_range(held(&storm, &now, 997, MS), 256, 270);
}

static void test_without_a_limit_all_are_held(void **state)
{
	struct storm storm = {};
	uint64_t now = BEGIN;

	(void)state;
	assert_int_equal(held(&storm, &now, 9973, 1), 9973);
}

/* What a look takes is the limit's part of the time; some are looked at in any case. */
static void test_what_a_limit_pays_for(void **state)
{
	(void)state;
	assert_int_equal(starts_paid_every_ns(0.05), 25 * MS);
	assert_int_equal(starts_paid_every_ns(0.5), 25 * MS / 10);
	assert_int_equal(starts_paid_every_ns(0), 25 * MS);
	assert_int_equal(starts_paid_every_ns(0.0001), 250 * MS);
	assert_int_equal(starts_paid_every_ns(1000), 1250000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_shell_loop_is_none),
		cmocka_unit_test(test_a_burst_and_then_few),
		cmocka_unit_test(test_without_a_limit_all_are_held),
		cmocka_unit_test(test_what_a_limit_pays_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
