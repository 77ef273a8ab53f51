// SPDX-License-Identifier: GPL-2.0
/* What looking at the memory of targets may take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "session/look_budget.h"

#define US 1000ULL
#define MS 1000000ULL
#define SECOND 1000000000ULL

/* Somebody asks all the time for ten seconds: looks that are made, and what they take of it. */
static uint64_t looks_made(uint64_t look_ns, uint64_t *spent)
{
	struct look_budget budget = { 0 };
	uint64_t now = SECOND, made = 0;

	*spent = 0;
	while (now < 11 * SECOND) {
		if (!look_is_allowed(&budget, now)) {
			now += 10 * US;
			continue;
		}
		look_was_made(&budget, now, now + look_ns);
		now += look_ns;
		*spent += look_ns;
		made++;
	}
	return made;
}

static void test_part_of_the_time(void **state)
{
	static const uint64_t looks[] = { 3 * US, 50 * US, 7 * MS, 100 * MS };
	uint64_t spent, made;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(looks) / sizeof(*looks); i++) {
		made = looks_made(looks[i], &spent);
		assert_true(made >= 2);
		assert_true(spent <
			    10 * SECOND / LOOK_PAUSE_FACTOR + LOOKS_FIRST_NS + 2 * looks[i]);
	}
	/* Looks that cost what they should are hardly ever refused at first. */
	made = looks_made(3 * US, &spent);
	assert_true(made > 10 * SECOND / (LOOK_PAUSE_FACTOR + 10) / (3 * US));
}

static void test_first_looks(void **state)
{
	struct look_budget budget = { 0 };
	uint64_t now = SECOND, made;

	(void)state;
	for (made = 0; look_is_allowed(&budget, now); made++, now += 3 * US)
		look_was_made(&budget, now, now + 3 * US);
	assert_int_equal(made, LOOKS_FIRST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_part_of_the_time),
		cmocka_unit_test(test_first_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
