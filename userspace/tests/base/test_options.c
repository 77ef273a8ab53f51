// SPDX-License-Identifier: GPL-2.0
/* Times and sizes on the command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/options.h"

static void test_durations(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "10s", 10000000000 },	 { "10", 10000000000 },	 { "500ms", 500000000 },
		{ "1.5s", 1500000000 },	 { "2m", 120000000000 }, { "7us", 7000 },
		{ "1h", 3600000000000 },
	};
	static const char *const bad[] = { "",	   "0",	    "0s",    "-1", "+1",  " 1",
					   "1 s",  "s",	    "ten",   "1x", "nan", "inf",
					   "0x10", "1e400", "1e30h", "1s2" };
	uint64_t ns;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_true(parse_duration(good[i].text, &ns));
		assert_int_equal(ns, good[i].ns);
	}
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(parse_duration(bad[i], &ns));
}

static void test_sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "65536", 65536 },	{ "64K", 65536 }, { "64KiB", 65536 }, { "1M", 1048576 },
		{ "1.5G", 1610612736 }, { "0", 0 },	  { "3b", 3 },
	};
	static const char *const bad[] = { "", "-1", "64Q", "K", "1 K", "0x10", "1e30", "nan" };
	uint64_t bytes;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_true(parse_size(good[i].text, &bytes));
		assert_int_equal(bytes, good[i].bytes);
	}
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(parse_size(bad[i], &bytes));
}

static void test_counts(void **state)
{
	static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "x", "0x1", "4294967296" };
	unsigned int count = 7;
	size_t i;

	(void)state;
	assert_true(parse_count("0", &count));
	assert_int_equal(count, 0);
	assert_true(parse_count("4294967295", &count));
	assert_int_equal(count, 4294967295U);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(parse_count(bad[i], &count));
	assert_int_equal(count, 4294967295U);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
