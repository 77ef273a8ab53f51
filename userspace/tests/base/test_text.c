// SPDX-License-Identifier: GPL-2.0
/* Figures with their units, as units.h has them for all languages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"

static const struct {
	const char *kind;
	double value;
	const char *table;
	const char *sentence; /* view figure */
} rows[] = {
#include "units.h"
};

static void test_units(void **state)
{
	char text[32];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		switch (*rows[i].kind) {
		case 't':
			format_time(text, sizeof(text), rows[i].value);
			break;
		case 'b':
			format_bytes(text, sizeof(text), rows[i].value);
			break;
		case 's':
			format_share(text, sizeof(text), rows[i].value);
			break;
		default:
			format_count(text, sizeof(text), rows[i].value);
			break;
		}
		assert_string_equal(text, rows[i].table);
	}
}

static void test_estimates(void **state)
{
	static const struct {
		int64_t number;
		const char *text;
	} cases[] = {
		{ 0, "0" },
		{ 7, "~7" },
		{ 994, "~994" },
		{ 1009, "~1.0 k" },
		{ 9949, "~9.9 k" },
		{ 12345, "~12 k" },
		{ 123456, "~120 k" },
		{ 994999, "~990 k" },
		{ 995001, "~1.0 M" },
		{ 5780297, "~5.8 M" },
		{ 11862403, "~12 M" },
		{ 996000000, "~1.0 G" },
		{ 123456789012, "~120 G" },
	};
	char text[32];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		format_estimate(text, sizeof(text), cases[i].number);
		assert_string_equal(text, cases[i].text);
	}
}

static void test_lower_bounds(void **state)
{
	char text[32];

	(void)state;
	format_at_least(text, sizeof(text), 1234567);
	assert_string_equal(text, ">= 1,234,567");
	format_at_least(text, 8, 1234567);
	assert_string_equal(text, ">= 1,23");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_estimates),
		cmocka_unit_test(test_lower_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
