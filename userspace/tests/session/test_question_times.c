// SPDX-License-Identifier: GPL-2.0
/* When a program that makes code is asked again what code it has made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "session/question_times.h"

#define MS 1000000ULL
#define SECOND 1000000000ULL

/* How many in a time, each answered after took_ns; wanted: new code is met all the time. */
static unsigned int questions(uint64_t until_ns, uint64_t took_ns, bool wrote, bool wanted)
{
	struct question_times times;
	unsigned int asked = 0;
	uint64_t now = SECOND;

	question_times_begin(&times, now);
	for (; now <= SECOND + until_ns; now += MS) {
		times.wanted |= wanted;
		if (!question_is_due(&times, now))
			continue;
		asked++;
		question_was_asked(&times, now);
		now += took_ns;
		question_was_answered(&times, now, wrote);
	}
	return asked;
}

static void test_after_twice_the_time(void **state)
{
	(void)state;
	assert_int_equal(questions(100 * MS, MS, true, false), 1);
	assert_int_equal(questions(20 * SECOND, MS, true, false), 6);
	assert_int_equal(questions(40 * SECOND, MS, true, false), 7);
}

static void test_sooner_where_code_is_met(void **state)
{
	(void)state;
	assert_in_range(questions(20 * SECOND, MS, true, true), 19, 21);
}

/* For a hundredth of the time; and in the first seconds as often as any. */
static void test_never_for_more_than_a_part(void **state)
{
	(void)state;
	assert_in_range(questions(100 * SECOND, 70 * MS, true, true), 14, 14 + 4);
}

static void test_one_that_starts(void **state)
{
	(void)state;
	assert_int_equal(questions(SECOND, MS, false, false), questions(SECOND, MS, false, true));
	assert_in_range(questions(SECOND, MS, false, false), 3, 4);
}

/* What was met while it was asked may be newer than its answer. */
static void test_what_is_met_meanwhile_counts(void **state)
{
	struct question_times times;

	(void)state;
	question_times_begin(&times, SECOND);
	question_was_asked(&times, 9 * SECOND);
	times.wanted = true;
	question_was_answered(&times, 9 * SECOND + MS, true);
	assert_false(question_is_due(&times, 10 * SECOND));
	assert_true(question_is_due(&times, 10 * SECOND + MS));
	question_was_asked(&times, 10 * SECOND + MS);
	question_was_answered(&times, 10 * SECOND + 2 * MS, true);
	assert_false(question_is_due(&times, 18 * SECOND));
	assert_true(question_is_due(&times, 20 * SECOND));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_after_twice_the_time),
		cmocka_unit_test(test_sooner_where_code_is_met),
		cmocka_unit_test(test_never_for_more_than_a_part),
		cmocka_unit_test(test_one_that_starts),
		cmocka_unit_test(test_what_is_met_meanwhile_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
