// SPDX-License-Identifier: GPL-2.0
/* When memtoll may come before others on the CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "host/priority.h"

#define SECOND 1000000000ULL

static void test_wanted(void **state)
{
	struct priority priority = { .raised = true };
	unsigned int i;

	(void)state;
	for (i = 0; i < 211; i++)
		assert_true(priority_wanted(&priority, SECOND / 11, SECOND));
	/*
	 * A moment's work is none, however often; several threads may take more than there is time.
	 */
	for (i = 0; i < 211; i++)
		assert_true(priority_wanted(&priority, i % PRIORITY_PATIENCE ? 3 * SECOND : 0,
					    SECOND));
	for (i = 0; i + 1 < PRIORITY_PATIENCE; i++)
		assert_true(priority_wanted(&priority, SECOND / 9, SECOND));
	assert_false(priority_wanted(&priority, SECOND / 9, SECOND));
	/* Not back and forth at the border. */
	priority.raised = false;
	assert_false(priority_wanted(&priority, SECOND / 11, SECOND));
	assert_false(priority_wanted(&priority, SECOND / 19, SECOND));
	assert_true(priority_wanted(&priority, SECOND / 21, SECOND));
}

/* Whatever it was, it is afterwards; where it may not be raised, it stays. */
static void test_given_back(void **state)
{
	struct priority priority = {};
	int before = getpriority(PRIO_PROCESS, 0), raised;

	(void)state;
	priority_end(&priority);
	assert_int_equal(getpriority(PRIO_PROCESS, 0), before);
	priority_begin(&priority);
	raised = getpriority(PRIO_PROCESS, 0);
	assert_true(raised == PRIORITY_NICE || raised == before);
	priority_end(&priority);
	priority_end(&priority);
	assert_int_equal(getpriority(PRIO_PROCESS, 0), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wanted),
		cmocka_unit_test(test_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
