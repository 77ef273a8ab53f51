// SPDX-License-Identifier: GPL-2.0
/* When patience ends: with what asks for the end, and with no sign of life since. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "watchdog.h"

#define USUAL (WATCHDOG_PATIENCE_MS / WATCHDOG_TICK_MS)
#define FINISHING (WATCHDOG_FINISHING_MS / WATCHDOG_TICK_MS)

/* Ticks in this state until patience ends; 0: it does not within `most`. */
static unsigned int ticks(struct watchdog_patience *patience, const struct watchdog_state *state,
			  unsigned int most)
{
	unsigned int i;

	for (i = 1; i <= most; i++)
		if (watchdog_tick(patience, state))
			return i;
	return 0;
}

static void test_nobody_asks(void **state)
{
	struct watchdog_patience patience = {};

	(void)state;
	assert_int_equal(ticks(&patience, &(struct watchdog_state){}, 4 * USUAL), 0);
}

static void test_a_signal_is_not_read(void **state)
{
	struct watchdog_patience patience = {};

	(void)state;
	assert_int_equal(ticks(&patience, &(struct watchdog_state){ .signal_waits = true },
			       4 * USUAL), USUAL);
}

static void test_over_time(void **state)
{
	struct watchdog_patience patience = {};

	(void)state;
	/* What went by before does not count. */
	assert_int_equal(ticks(&patience, &(struct watchdog_state){}, 3), 0);
	assert_int_equal(ticks(&patience, &(struct watchdog_state){ .due = true }, 4 * USUAL),
			 USUAL);
}

static void test_signs_of_life(void **state)
{
	struct watchdog_patience patience = {};
	struct watchdog_state found = { .due = true };
	unsigned int i;

	(void)state;
	/* One is enough each time, and from the last one on patience is whole again. */
	for (i = 0; i < 5; i++) {
		assert_int_equal(ticks(&patience, &found, USUAL - 1), 0);
		found.alive++;
	}
	assert_false(watchdog_tick(&patience, &found));
	assert_int_equal(ticks(&patience, &found, 4 * USUAL), USUAL);
}

static void test_finishing(void **state)
{
	struct watchdog_patience patience = {};
	struct watchdog_state found = { .due = true, .finishing = true };

	(void)state;
	assert_int_equal(ticks(&patience, &found, 2 * FINISHING), FINISHING);
}

/* Asked for once more, it ends even where it gets on. */
static void test_asked_again(void **state)
{
	struct watchdog_patience patience = {};
	struct watchdog_state found = { .due = true, .finishing = true, .signal_waits = true };
	unsigned int i;

	(void)state;
	for (i = 1; i < USUAL; i++, found.alive++)
		assert_false(watchdog_tick(&patience, &found));
	assert_true(watchdog_tick(&patience, &found));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_asks),
		cmocka_unit_test(test_a_signal_is_not_read),
		cmocka_unit_test(test_over_time),
		cmocka_unit_test(test_signs_of_life),
		cmocka_unit_test(test_finishing),
		cmocka_unit_test(test_asked_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
