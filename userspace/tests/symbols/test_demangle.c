// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE 1

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "measured.h"
#include "symbols/demangle.h"

static void expect(const char *name, const char *wanted)
{
	char text[DEMANGLE_MAX + 1];

	demangle(name, text, sizeof(text));
	assert_string_equal(text, wanted);
}

static void test_schemes(void **state)
{
	(void)state;
	/* Itanium C++ ABI, section 5.1: nested names, templates, operators. */
	expect("_ZN4toll6bufferIdE4fillEdi", "toll::buffer<double>::fill(double, int)");
	expect("_Znwm", "operator new(unsigned long)");
	/* Rust's legacy scheme is C++'s with a hash in the end, which says nothing to readers. */
	expect("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
	/* Rust RFC 2603, the examples' shape: crate with disambiguator, module, function. */
	expect("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
}

static void test_suffixes(void **state)
{
	(void)state;
	expect("reserve.cold", "reserve");
	expect("reserve.constprop.0.isra.0", "reserve");
	expect("runtime.madvise.abi0", "runtime.madvise");
	expect("_ZN4toll4fillEi.part.3", "toll::fill(int)");
	expect("memcpy@@GLIBC_2.14", "memcpy");
	/* Dots that belong to the name. */
	expect("runtime.mallocgc", "runtime.mallocgc");
	expect("main.colder", "main.colder");
	expect(".cold", ".cold");
	expect("", "");
	expect("_Znonsense", "_Znonsense");
	expect("_", "_");
}

/* Each substitution holds the one before twice: 2^90 letters if it were written out. */
static void test_explosion(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char text[DEMANGLE_MAX + 1];
	char name[2048] = "_Z1fSt4pairIiiE";
	struct timespec begin;
	struct timespec end;
	size_t used = strlen(name);
	unsigned int i;

	(void)state;
	for (i = 0; i < 90; i++) {
		char last[8];

		/* Base 36; S_ is std::pair, S0_ the first pair<>, S1_ the next. */
		if (i < 36)
			snprintf(last, sizeof(last), "S%c_", digits[i]);
		else
			snprintf(last, sizeof(last), "S%c%c_", digits[i / 36], digits[i % 36]);
		used += (size_t)snprintf(name + used, sizeof(name) - used, "S_I%s%sE", last, last);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	demangle(name, text, sizeof(text));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_int_equal(strlen(text), DEMANGLE_MAX);
	assert_int_equal(strncmp(text, "f(std::pair<int, int>", 21), 0);
	assert_true(!times_count() || end.tv_sec - begin.tv_sec < 3);
}

static void test_long(void **state)
{
	char text[19];
	char *name = malloc(100003);

	(void)state;
	assert_non_null(name);
	memset(name, 'x', 100002);
	name[100002] = '\0';
	demangle(name, text, sizeof(text));
	assert_string_equal(text, "xxxxxxxxxxxxxxxxxx");
	memcpy(name, "_Z99999", 7);
	demangle(name, text, sizeof(text));
	assert_string_equal(text, "_Z99999xxxxxxxxxxx");
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schemes),
		cmocka_unit_test(test_suffixes),
		cmocka_unit_test(test_explosion),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
