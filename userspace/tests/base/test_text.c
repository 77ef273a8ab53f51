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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
