// SPDX-License-Identifier: GPL-2.0
/* test_compare_print.c: what memtoll compare concludes of its runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "compare/compare_print.h"

#define RUNS 3

/* What is concluded where each run of a side took so long, a little more and a little less. */
static char *conclude(const double observed_s[SIDES], const double wall_s[SIDES],
		      const double cpu_s[SIDES], uint64_t duration_ns, const char **verdict)
{
	static const double disturbed[RUNS] = { 0.99, 1, 1.01 };
	const double divisor[SIDES] = { 1, 1 };
	const struct compare_plan plan = { .runs = RUNS, .tracing.duration_ns = duration_ns };
	struct comparison *comparison = comparison_new();
	const struct {
		enum compare_kind kind;
		const char *name;
		const double *of;
	} figures[] = {
		{ COMPARE_TOTAL, "observed", observed_s },
		{ COMPARE_RUN, "wall time", wall_s },
		{ COMPARE_RUN, "CPU time", cpu_s },
	};
	char *sentence;
	size_t i, run;
	int side;

	for (i = 0; i < G_N_ELEMENTS(figures); i++)
		for (side = 0; side < SIDES; side++)
			for (run = 0; run < RUNS; run++) {
				double value = figures[i].of[side] * disturbed[run];

				g_array_append_val(comparison_figure(comparison, figures[i].kind,
								     figures[i].name, NULL,
								     COMPARE_SECONDS)
							   ->values[side],
						   value);
			}
	comparison_finish(comparison, divisor);
	sentence = compare_conclusion(&plan, comparison, verdict);
	comparison_free(comparison);
	return sentence;
}

static void concludes(const double observed_s[SIDES], const double wall_s[SIDES],
		      const double cpu_s[SIDES], uint64_t duration_ns, const char *verdict,
		      const char *beginning)
{
	const char *found;
	char *sentence = conclude(observed_s, wall_s, cpu_s, duration_ns, &found);

	assert_string_equal(found, verdict);
	if (strncmp(sentence, beginning, strlen(beginning)) != 0)
		fail_msg("'%s' does not begin with '%s'", sentence, beginning);
	g_free(sentence);
}

static const double shorter[SIDES] = { 2, 1 }, longer[SIDES] = { 1, 2 };

static void what_is_proved_is_said(void **state)
{
	const double alike[SIDES] = { 1, 1.015 };

	(void)state;
	concludes(shorter, shorter, shorter, 0, "less", "The change saves 50 %");
	concludes(longer, longer, longer, 0, "more", "The change costs 2.00 times as much");
	concludes(alike, alike, alike, 0, "none", "No difference: ");
}

/* The tracer's runs say the one, those without it the other: neither is true of the program. */
static void runs_that_were_not_traced_have_a_say(void **state)
{
	(void)state;
	concludes(shorter, longer, longer, 0, "none", "No difference that holds: ");
	concludes(longer, shorter, shorter, 0, "none", "No difference that holds: ");
	/* It waits less and computes more, or the other way round: that may be. */
	concludes(shorter, shorter, longer, 0, "less", "The change saves ");
	concludes(shorter, longer, shorter, 0, "less", "The change saves ");
	/* Ended after a time they all take as long. */
	concludes(shorter, longer, longer, 1000000000, "less", "The change saves ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_proved_is_said),
		cmocka_unit_test(runs_that_were_not_traced_have_a_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
