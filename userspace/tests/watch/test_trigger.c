// SPDX-License-Identifier: GPL-2.0
/* test_trigger.c: conditions of `memtoll watch --when`: what they say, and how long it must hold. */
#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "watch/trigger.h"

#define S 1000000000ULL

struct values {
	double swap, psi;
	bool unknown;
};

static bool known(const char *name)
{
	return !strcmp(name, "swap.share") || !strcmp(name, "psi.memory.some");
}

static bool value(void *context, const char *name, double *number)
{
	const struct values *values = context;

	*number = name[0] == 's' ? values->swap : values->psi;
	return !values->unknown;
}

static bool decide(const char *text, struct values values)
{
	char *error;
	struct trigger *trigger = trigger_parse(text, known, &error);
	bool holds;

	if (!trigger)
		fail_msg("%s: %s", text, error);
	holds = trigger_holds(trigger, value, &values);
	trigger_free(trigger);
	return holds;
}

static void test_comparisons(void **state)
{
	(void)state;
	assert_true(decide("swap.share > 0.3", (struct values){ .swap = 0.31 }));
	assert_false(decide("swap.share > 0.3", (struct values){ .swap = 0.3 }));
	assert_true(decide("swap.share>=0.3", (struct values){ .swap = 0.3 }));
	assert_true(decide("psi.memory.some<10 for 5s", (struct values){ .psi = 9.9 }));
	assert_true(decide(" psi.memory.some <= 10 ", (struct values){ .psi = 10 }));
	assert_false(decide("psi.memory.some <= 10", (struct values){ .unknown = true }));
}

/* "and" binds closer than "or". */
static void test_and_or(void **state)
{
	static const char either[] =
		"swap.share > 0.5 or swap.share > 0.1 and psi.memory.some > 10";
	static const char both[] =
		"(swap.share > 0.5 or swap.share > 0.1) and psi.memory.some > 10";

	(void)state;
	assert_true(decide(either, (struct values){ .swap = 0.6 }));
	assert_false(decide(both, (struct values){ .swap = 0.6 }));
	assert_true(decide(both, (struct values){ .swap = 0.2, .psi = 11 }));
	assert_false(decide(either, (struct values){ .swap = 0.2, .psi = 9 }));
}

static void test_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"swap.share",
		"swap.share >",
		"swap.share > x",
		"swap.share > 0.3 for",
		"swap.share > 0.3 for 3x",
		"swap.share = 0.3",
		"disk.share > 1",
		"> 0.3",
		"(swap.share > 0.3",
		"swap.share > 0.3)",
		"swap.share > 0.3 and",
		"swap.share > 0.3 swap.share > 0.3",
		"swap.share > -1",
		"swap.share > nan",
		"swap.share > 0.3 for 3s or swap.share > 1",
	};
	g_autoptr(GString) deep = g_string_new("");
	char *error;
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(wrong); i++) {
		if (trigger_parse(wrong[i], known, &error))
			fail_msg("'%s' was taken", wrong[i]);
		assert_non_null(error);
		g_free(error);
	}
	for (i = 0; i < 1000; i++)
		g_string_append_c(deep, '(');
	assert_null(trigger_parse(deep->str, known, &error));
	g_free(error);
	g_string_assign(deep, "swap.share > 1");
	for (i = 0; i < 1000; i++)
		g_string_append(deep, " or swap.share > 1");
	assert_null(trigger_parse(deep->str, known, &error));
	g_free(error);
}

/* It fires after it has held as long, and ends only after it has not held as long. */
static void test_time(void **state)
{
	char *error;
	struct trigger *trigger = trigger_parse("swap.share > 0.3 for 3s", known, &error);

	(void)state;
	assert_false(trigger_step(trigger, 10 * S, true));
	assert_false(trigger_step(trigger, 12 * S, true));
	assert_false(trigger_step(trigger, 13 * S - 1, false));
	assert_false(trigger_step(trigger, 14 * S, true));
	assert_false(trigger_step(trigger, 17 * S - 1, true));
	assert_true(trigger_step(trigger, 17 * S, true));
	assert_true(trigger_step(trigger, 18 * S, false));
	assert_true(trigger_step(trigger, 20 * S, true));
	assert_true(trigger_step(trigger, 21 * S, false));
	assert_false(trigger_step(trigger, 24 * S, false));
	trigger_free(trigger);
	trigger = trigger_parse("swap.share > 0.3", known, &error);
	assert_true(trigger_step(trigger, 1, true));
	assert_false(trigger_step(trigger, 2, false));
	trigger_free(trigger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comparisons),
		cmocka_unit_test(test_and_or),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
