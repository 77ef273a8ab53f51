// SPDX-License-Identifier: GPL-2.0
/* test_compare.c: the statistics of memtoll compare, with t from the integral of its density. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "compare/compare.h"

static void close_to(double is, double wanted, double within)
{
	if (!(fabs(is - wanted) <= within))
		fail_msg("%.9g is not %.9g +- %g", is, wanted, within);
}

static void add(GArray *array, const double *values, size_t count)
{
	g_array_append_vals(array, values, count);
}

static void spread_of_runs(void **state)
{
	static const double without[] = { 10.1, 9.8, 10.4, 10.0 }, with[] = { 8.9, 9.3, 9.0 };
	const double divisor[SIDES] = { 1, 1 };
	struct comparison *comparison = comparison_new();
	struct figure *figure =
		comparison_figure(comparison, COMPARE_TOTAL, "observed", NULL, COMPARE_SECONDS);

	(void)state;
	add(figure->values[WITHOUT], without, 4);
	add(figure->values[WITH], with, 3);
	comparison_finish(comparison, divisor);
	close_to(figure->difference.value, -1.0083333, 1e-6);
	/* 4.8690 degrees of freedom, standard error 0.1734054, t 2.5915 and 4.0886 */
	close_to(figure->difference.low, -1.457719, 0.0005);
	close_to(figure->difference.high, -0.558948, 0.0005);
	close_to(figure->ratio.value, 9.0666667 / 10.075, 1e-6);
	assert_true(difference_proved(&figure->difference));
	comparison_free(comparison);
}

static void equal_runs_differ_by_any_amount(void **state)
{
	static const double without[] = { 5, 5 }, with[] = { 5.001, 5.001 };
	const double divisor[SIDES] = { 1, 1 };
	struct comparison *comparison = comparison_new();
	struct figure *figure =
		comparison_figure(comparison, COMPARE_RUN, "faults", NULL, COMPARE_COUNT);

	(void)state;
	add(figure->values[WITHOUT], without, 2);
	add(figure->values[WITH], with, 2);
	comparison_finish(comparison, divisor);
	close_to(figure->difference.low, figure->difference.high, 1e-12);
	assert_true(difference_proved(&figure->difference));
	comparison_free(comparison);
}

/* A tenth of the time, with a spread of a fifth of itself on both sides. */
static void ratios_are_of_logarithms(void **state)
{
	static const double without[] = { 160, 200, 250 }, with[] = { 16, 20, 25 };
	const double divisor[SIDES] = { 1, 1 };
	struct comparison *comparison = comparison_new();
	struct figure *figure =
		comparison_figure(comparison, COMPARE_TOTAL, "observed", NULL, COMPARE_SECONDS);
	/* The logarithms are 0.2231 apart: their variance is its square, of the mean a third. */
	double half = 4.6041 * sqrt(2 * 0.223144 * 0.223144 / 3);

	(void)state;
	add(figure->values[WITHOUT], without, 3);
	add(figure->values[WITH], with, 3);
	comparison_finish(comparison, divisor);
	close_to(figure->ratio.value, 0.1, 1e-9);
	close_to(figure->ratio.low, 0.1 * exp(-half), 1e-5);
	close_to(figure->ratio.high, 0.1 * exp(half), 1e-5);
	assert_true(ratio_proved(&figure->ratio));
	comparison_free(comparison);
}

static void ratio_of_nothing_has_no_bounds(void **state)
{
	static const double without[] = { 1, 2 }, with[] = { 0, 0 };
	const double divisor[SIDES] = { 1, 1 };
	struct comparison *comparison = comparison_new();
	struct figure *figure =
		comparison_figure(comparison, COMPARE_TOLL, "map", "mapping", COMPARE_SECONDS);

	(void)state;
	add(figure->values[WITHOUT], without, 2);
	add(figure->values[WITH], with, 2);
	comparison_finish(comparison, divisor);
	assert_true(isnan(figure->ratio.low));
	assert_false(ratio_proved(&figure->ratio));
	comparison_free(comparison);
}

/* Blocks of unequal length: what varies is the rate, not the amount. */
static void blocks_of_one_run(void **state)
{
	static const double seconds[] = { 1, 2, 1, 4 }, steady[] = { 0.5, 1, 0.5, 2 };
	static const double uneven[] = { 0.9, 0.8, 0.3, 2 };
	const double divisor[SIDES] = { 1, 8 }, whole = 4, rate = 0.5;
	struct comparison *comparison = comparison_new();
	struct figure *figure =
		comparison_figure(comparison, COMPARE_TOLL, "map", "mapping", COMPARE_SECONDS);
	double squares = 0.4 * 0.4 + 0.2 * 0.2 + 0.2 * 0.2;

	(void)state;
	add(comparison->block_s[WITHOUT], seconds, 4);
	add(comparison->block_s[WITH], seconds, 4);
	add(figure->values[WITHOUT], &whole, 1);
	add(figure->values[WITH], &rate, 1);
	add(figure->blocks[WITHOUT], uneven, 4);
	add(figure->blocks[WITH], steady, 4);
	comparison_finish(comparison, divisor);
	close_to(figure->estimate[WITHOUT].variance, squares * 4 / 3, 1e-9);
	close_to(figure->estimate[WITH].variance, 0, 0);
	close_to(figure->estimate[WITHOUT].freedom, 3, 0);
	close_to(figure->difference.value, -3.5, 1e-9);
	close_to(figure->difference.high - figure->difference.value, 3.1824 * sqrt(squares * 4 / 3),
		 1e-6);
	comparison_free(comparison);
}

static void without_enough_there_are_no_bounds(void **state)
{
	static const double one = 1, two = 2;
	const double divisor[SIDES] = { 1, 1 };
	struct comparison *comparison = comparison_new();
	struct figure *figure =
		comparison_figure(comparison, COMPARE_TOTAL, "observed", NULL, COMPARE_SECONDS);
	struct figure *half =
		comparison_figure(comparison, COMPARE_TOLL, "cow", "cow", COMPARE_SECONDS);

	(void)state;
	add(figure->values[WITHOUT], &one, 1);
	add(figure->values[WITH], &two, 1);
	add(half->values[WITH], &two, 1);
	comparison_finish(comparison, divisor);
	close_to(figure->difference.value, 1, 1e-9);
	assert_true(isnan(figure->difference.low) && isnan(figure->ratio.high));
	assert_false(difference_proved(&figure->difference));
	assert_true(isnan(half->difference.value));
	assert_ptr_equal(comparison_find(comparison, COMPARE_TOLL, "cow"), half);
	assert_null(comparison_find(comparison, COMPARE_TOTAL, "cow"));
	comparison_free(comparison);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spread_of_runs),
		cmocka_unit_test(equal_runs_differ_by_any_amount),
		cmocka_unit_test(ratios_are_of_logarithms),
		cmocka_unit_test(ratio_of_nothing_has_no_bounds),
		cmocka_unit_test(blocks_of_one_run),
		cmocka_unit_test(without_enough_there_are_no_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
