// SPDX-License-Identifier: GPL-2.0
/* The likely reason, by the calls of a place: it says nothing that the figures do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "report/growth_internal.h"

/* Cleared by calloc: from 1000 times 1 MB on. */
static struct site_growth cleared(double times, double calls, double each)
{
	return (struct site_growth){
		.toll = "zero.libc",
		.call = "calloc",
		.area = "",
		.allocated = "parse",
		.touched = "",
		.file = "",
		.count = { 1000, 1000 * times },
		.bytes = { 1e9, 1e9 * times },
		.calls = { 1000, 1000 * calls },
		.asked = { 1e9, 1e9 * calls * each },
	};
}

static void test_reasons(void **state)
{
	static const struct {
		double times, calls, each;
		const char *reason;
	} cases[] = {
		{ 2, 2, 1,
		  "calloc is called 2 times as often here, for blocks of much the same size." },
		{ 3, 1, 3, "calloc is called as often here, for blocks 3 times as large." },
		{ 6, 2, 3, "calloc is called 2 times as often here, for blocks 3 times as large." },
		{ 2, 0.5, 4, "calloc is called less often here, for blocks 4 times as large." },
		{ 2, 4, 0.5, "calloc is called 4 times as often here, for smaller blocks." },
		{ 2, 0.5, 1, "It happens 2 times as much at this place." },
		{ 2, 0, 1, "It happens 2 times as much at this place." },
		{ 2, 2, 0, "calloc is called 2 times as often here, for smaller blocks." },
	};
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct site_growth site = cleared(cases[i].times, cases[i].calls, cases[i].each);
		g_autofree char *reason = growth_reason(&site);

		assert_string_equal(reason, cases[i].reason);
	}
}

/* No sizes are known: nothing is said of them. */
static void test_no_sizes(void **state)
{
	struct site_growth site = cleared(2, 2, 1);
	g_autofree char *reason = NULL;

	(void)state;
	site.asked[BEFORE] = site.asked[AFTER] = 0;
	reason = growth_reason(&site);
	assert_string_equal(reason, "calloc is called 2 times as often here.");
}

static void test_as_many_calls(void **state)
{
	struct site_growth site = cleared(2, 1.01, 1);
	g_autofree char *reason = growth_reason(&site);

	(void)state;
	assert_true(g_str_has_prefix(reason, "As many calls for as much memory, but more of the"));
}

static void test_estimates(void **state)
{
	struct site_growth site = cleared(2, 3, 1);
	g_autofree char *of_calls = NULL, *new = NULL;

	(void)state;
	site.estimated = site.calls_estimated = true;
	of_calls = growth_reason(&site);
	assert_non_null(strstr(of_calls, "called about 3 times as often"));
	site.count[BEFORE] = site.bytes[BEFORE] = site.calls[BEFORE] = site.asked[BEFORE] = 0;
	new = growth_reason(&site);
	assert_non_null(strstr(new, "before, when not all was watched"));
}

static void test_new(void **state)
{
	struct site_growth site = cleared(2, 3, 1);
	g_autofree char *reason = NULL;

	(void)state;
	site.count[BEFORE] = site.bytes[BEFORE] = site.calls[BEFORE] = site.asked[BEFORE] = 0;
	reason = growth_reason(&site);
	assert_string_equal(reason, "This call of calloc is new.");
}

static void test_figures(void **state)
{
	struct site_growth site = cleared(2, 2, 1);
	g_autofree char *known = growth_figure(&site, AFTER, false), *least = NULL;

	(void)state;
	assert_string_equal(known, "1.86 GiB (2,000 times)");
	site.at_least = true;
	least = growth_figure(&site, AFTER, false);
	assert_string_equal(least, "at least 1.86 GiB (2,000 times)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reasons),	      cmocka_unit_test(test_no_sizes),
		cmocka_unit_test(test_as_many_calls), cmocka_unit_test(test_estimates),
		cmocka_unit_test(test_new),	      cmocka_unit_test(test_figures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
