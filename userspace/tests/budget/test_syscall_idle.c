// SPDX-License-Identifier: GPL-2.0
/* System calls are watched while they do something to be recorded, and for a while after. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "budget/syscall_idle.h"

#define MS 1000000ULL
#define SECOND (1000 * MS)
#define LOOK (20 * MS)

struct program {
	uint64_t now_ns;
	struct memtoll_rates rates;
	struct syscall_idle idle;
};

static void begin(struct program *program)
{
	*program =
		(struct program){ .now_ns = 7 * SECOND, .rates = { .maps = 1009, .faults = 9973 } };
	syscall_idle_begin(&program->idle, program->now_ns, &program->rates);
}

/* Look so long every 20 ms; how long they were watched. */
static uint64_t pass(struct program *program, uint64_t ns)
{
	uint64_t end_ns = program->now_ns + ns, watched_ns = 0;

	while (program->now_ns < end_ns) {
		program->now_ns += LOOK;
		if (syscall_idle_step(&program->idle, program->now_ns, &program->rates))
			watched_ns += LOOK;
	}
	return watched_ns;
}

static void test_silence(void **state)
{
	struct program program;

	(void)state;
	begin(&program);
	/* For a second, and then not again. */
	assert_int_equal(pass(&program, 3600 * SECOND), SECOND - LOOK);
}

static void test_each_kind_is_news(void **state)
{
	struct program program;
	size_t i;

	(void)state;
	for (i = 0; i < 5; i++) {
		__u64 *const counts[] = {
			&program.rates.unwatched_maps, &program.rates.unwatched_reads,
			&program.rates.maps,	       &program.rates.reads,
			&program.rates.rested_reads,
		};

		begin(&program);
		pass(&program, 5 * SECOND);
		*counts[i] += 3;
		assert_int_equal(pass(&program, 5 * SECOND), 0);
		*counts[i] += 4;
		assert_int_equal(pass(&program, LOOK), LOOK);
	}
}

/* Few calls in each second go unseen for ever; as many at once do not. */
static void test_few_and_many(void **state)
{
	struct program program;
	int i;

	(void)state;
	begin(&program);
	pass(&program, 5 * SECOND);
	for (i = 0; i < 100; i++) {
		program.rates.unwatched_maps++;
		assert_int_equal(pass(&program, SECOND / 2), 0);
	}
	for (i = 0; i < 3; i++) {
		program.rates.unwatched_maps++;
		assert_int_equal(pass(&program, LOOK), 0);
	}
	program.rates.unwatched_reads += 2;
	assert_int_equal(pass(&program, LOOK), LOOK);
}

static void test_faults(void **state)
{
	struct program program;
	int i;

	(void)state;
	begin(&program);
	pass(&program, 5 * SECOND);
	for (i = 0; i < 50; i++) {
		program.rates.faults += 18;
		assert_int_equal(pass(&program, LOOK), 0);
	}
	for (i = 0; i < 50; i++) {
		program.rates.faults += 22;
		pass(&program, LOOK);
	}
	assert_true(program.idle.watched);
}

static void test_stays_for_a_while(void **state)
{
	struct program program;

	(void)state;
	begin(&program);
	pass(&program, 5 * SECOND);
	program.rates.unwatched_maps += 4;
	/* Ten seconds, and to the end of the second that is looked at. */
	assert_in_range(pass(&program, 60 * SECOND), 10 * SECOND, 11 * SECOND);
}

static void test_busy(void **state)
{
	struct program program;
	int i;

	(void)state;
	begin(&program);
	for (i = 0; i < 600; i++) {
		program.rates.reads++;
		assert_int_equal(pass(&program, SECOND / 5), SECOND / 5);
	}
	assert_true(pass(&program, 10 * SECOND) < 2 * SECOND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silence),		  cmocka_unit_test(test_each_kind_is_news),
		cmocka_unit_test(test_few_and_many),	  cmocka_unit_test(test_faults),
		cmocka_unit_test(test_stays_for_a_while), cmocka_unit_test(test_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
