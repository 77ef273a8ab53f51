// SPDX-License-Identifier: GPL-2.0
/* Of how many faults one is looked at: fewer where they cost too much, more again where they do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "budget/thinning.h"

#define MS 1000000ULL
#define LIMIT 0.05

static const struct calibration_result prices = {
	.fault = { .hit_ns = 100 },
	.fault_begin_ns = 70,
	.read = { .hit_ns = 1000 },
	.read_program_ns = 800,
	.map = { .hit_ns = 400 },
};

struct target {
	struct thinning thinning;
	uint64_t now_ns;
	uint64_t cpu_ns;
	struct memtoll_rates rates;
};

static void begin(struct target *target, uint64_t spared_cpu_ns)
{
	*target = (struct target){ .now_ns = 7000 * MS };
	thinning_begin(&target->thinning, LIMIT, &prices, spared_cpu_ns);
	assert_int_equal(thinning_step(&target->thinning, target->now_ns, 0, &target->rates), 1);
}

/* A tenth of a second of work with so many faults, of which one in so many is looked at. */
static unsigned int work(struct target *target, uint64_t faults, uint64_t each_ns)
{
	uint64_t seen = faults / target->thinning.one_in;

	target->now_ns += 100 * MS;
	target->cpu_ns += 100 * MS;
	target->rates.faults += seen;
	target->rates.passed_faults += faults - seen;
	target->rates.fault_ns += seen * each_ns + (faults - seen) * 70;
	return thinning_step(&target->thinning, target->now_ns, target->cpu_ns, &target->rates);
}

static void test_few_are_all_looked_at(void **state)
{
	struct target target;
	int i;

	(void)state;
	begin(&target, 0);
	for (i = 0; i < 50; i++)
		assert_int_equal(work(&target, 1009, 500), 1);
}

/* A read in 64 is timed: of a few hundred in a second one that was slow says nothing of the others. */
static void test_one_slow_event_is_not_many(void **state)
{
	struct target target;
	int i;

	(void)state;
	begin(&target, 0);
	for (i = 0; i < 50; i++)
		assert_int_equal(work(&target, 97, 100000), 1);
}

static void test_many_are_thinned(void **state)
{
	struct target target;
	unsigned int one_in, least;
	int i;

	(void)state;
	begin(&target, 0);
	/* A quarter of the time, a tenth of which is allowed. */
	least = work(&target, 50021, 500);
	assert_in_range(least, 8, 32);
	for (i = 0; i < 50; i++) {
		one_in = work(&target, 50021, 500);
		assert_in_range(one_in, 4, 64);
	}
	/* They end: all are looked at again, not at once. */
	assert_true(work(&target, 11, 500) > 1);
	for (i = 0; i < 100; i++)
		one_in = work(&target, 11, 500);
	assert_int_equal(one_in, 1);
}

/* There is no more to be had than what it takes to count. */
static void test_never_fewer_than_one_in_64(void **state)
{
	struct target target;
	unsigned int one_in = 1;
	int i;

	(void)state;
	begin(&target, 0);
	for (i = 0; i < 50; i++)
		one_in = work(&target, 90001, 50000);
	assert_int_equal(one_in, 64);
	assert_int_equal(thinning_draw(64), UINT32_MAX / 64);
	assert_int_equal(thinning_draw(1), UINT32_MAX);
}

/* What follows in order, or is only counted, is no reason. */
static void test_cheap_ones_are_no_reason(void **state)
{
	struct target target;
	int i;

	(void)state;
	begin(&target, 0);
	for (i = 0; i < 50; i++) {
		target.rates.ordered_faults += 90001;
		assert_int_equal(work(&target, 90001, 70), 1);
	}
}

static void test_reads_and_walks_count(void **state)
{
	struct target target;

	(void)state;
	begin(&target, 0);
	target.rates.reads += 20011;
	target.rates.read_ns += 20011 * 800;
	assert_true(work(&target, 0, 0) > 1);
	begin(&target, 0);
	target.rates.walk_ns += 10 * MS;
	assert_true(work(&target, 0, 0) > 1);
}

/* Half of what they cost can be spared; of those that are passed over nothing more. */
static void test_mapping_calls_count(void **state)
{
	struct target target;

	(void)state;
	begin(&target, 0);
	target.rates.drawn_maps += 5003;
	assert_int_equal(work(&target, 0, 0), 1);
	target.rates.drawn_maps += 20011;
	assert_true(work(&target, 0, 0) > 1);
	begin(&target, 0);
	target.rates.passed_maps += 50021;
	assert_int_equal(work(&target, 0, 0), 1);
}

/* Faults in no order, all passed over or, once they rest, counted by the kernel alone. */
static bool rests_after(struct target *target, uint64_t faults)
{
	uint64_t windows = target->thinning.faults.rests ? 100 : 0;

	target->now_ns += 100 * MS;
	target->cpu_ns += 100 * MS;
	target->rates.faults += windows;
	target->rates.fault_ns += windows * 500;
	if (target->thinning.faults.rests) {
		target->rates.rested_faults += faults - windows;
	} else {
		target->rates.passed_faults += faults;
		target->rates.fault_ns += faults * 70;
		target->rates.least_fault_ns += faults * 70;
	}
	thinning_step(&target->thinning, target->now_ns, target->cpu_ns, &target->rates);
	return target->thinning.faults.rests;
}

/* 140 ns each, of 5 ms in a tenth of a second: 35,715 take all of the limit. */
static void test_faults_rest(void **state)
{
	struct target target;
	int i;

	(void)state;
	begin(&target, 0);
	for (i = 0; i < 20; i++)
		assert_false(rests_after(&target, 35000));
	assert_true(rests_after(&target, 36500));
	for (i = 0; i < 100; i++)
		assert_true(rests_after(&target, 36500));
	/* Of fewer they still would take much; then they do not, for a second. */
	for (i = 0; i < 20; i++)
		assert_true(rests_after(&target, 23000));
	assert_false(rests_after(&target, 20000));
	/* They do not come and go all the time. */
	for (i = 0; i < 49; i++)
		assert_false(rests_after(&target, 50000));
	assert_true(rests_after(&target, 50000));
}

/* A calm after the storm: each is seen again, however few there are to judge by. */
static void test_rest_ends_with_the_storm(void **state)
{
	struct target target;
	int i;

	(void)state;
	begin(&target, 0);
	assert_true(rests_after(&target, 50021));
	for (i = 0; i < 9; i++)
		assert_true(rests_after(&target, 100));
	for (i = 0; i < 2; i++)
		rests_after(&target, 100);
	assert_false(target.thinning.faults.rests);
}

/* Where something else takes all of the limit, whatever counting them takes is too much. */
static void test_faults_rest_for_others(void **state)
{
	struct target target;

	(void)state;
	begin(&target, 0);
	target.rates.thread_ns += 5 * MS;
	assert_false(rests_after(&target, 2003));
	target.rates.thread_ns += 5 * MS;
	assert_true(rests_after(&target, 5003));
}

/* Faults that wait, or are in the allocator, are to be seen each. */
static void test_some_faults_never_rest(void **state)
{
	struct target target;
	int i;

	(void)state;
	begin(&target, 0);
	assert_true(rests_after(&target, 50021));
	target.rates.waited_faults += 97;
	assert_false(rests_after(&target, 50021));
	begin(&target, 0);
	for (i = 0; i < 20; i++) {
		target.rates.faults += 701;
		target.rates.inside_faults += 97;
		assert_false(rests_after(&target, 50021));
	}
}

/* Reads, of which some 20 are in windows once they rest; mapping calls beside them. */
static bool calls_rest_after(struct target *target, uint64_t reads, uint64_t maps)
{
	target->now_ns += 100 * MS;
	target->cpu_ns += 100 * MS;
	if (target->thinning.calls.rests) {
		target->rates.reads += 97;
		target->rates.rested_reads += reads - 97;
	} else {
		target->rates.reads += reads;
	}
	if (target->thinning.calls.rests && !target->thinning.maps_are_seen)
		target->rates.unwatched_maps += maps;
	else
		target->rates.maps += maps;
	thinning_step(&target->thinning, target->now_ns, target->cpu_ns, &target->rates);
	return target->thinning.calls.rests;
}

/* 200 ns each at least: 12,500 take half of the limit. */
static void test_calls_rest(void **state)
{
	struct target target;
	int i;

	(void)state;
	begin(&target, 0);
	target.thinning.calls_may_rest = true;
	for (i = 0; i < 20; i++)
		assert_false(calls_rest_after(&target, 12011, 0));
	assert_true(calls_rest_after(&target, 13003, 0));
	for (i = 0; i < 100; i++)
		assert_true(calls_rest_after(&target, 30011, 7));
	/* Not where mappings change: none of those is to be missed. */
	assert_false(calls_rest_after(&target, 30011, 31));
	for (i = 0; i < 49; i++)
		assert_false(calls_rest_after(&target, 50021, 0));
	assert_true(calls_rest_after(&target, 50021, 0));
}

/* Reads that wait, for a tenth of the time and more, are seen each as long as each is looked at. */
static void test_calls_that_wait(void **state)
{
	struct target target;
	int i;

	(void)state;
	begin(&target, 0);
	target.thinning.calls_may_rest = true;
	target.rates.waited_read_ns += 5 * MS;
	assert_true(calls_rest_after(&target, 30011, 0));
	begin(&target, 0);
	target.thinning.calls_may_rest = true;
	target.rates.waited_read_ns += 20 * MS;
	assert_false(calls_rest_after(&target, 30011, 0));
	/* Soon one in 32 and less is. */
	for (i = 0; i < 9; i++) {
		target.rates.waited_read_ns += 20 * MS / target.thinning.one_in;
		calls_rest_after(&target, 30011, 0);
	}
	assert_true(target.thinning.calls.rests);
	target.rates.waited_read_ns += MS;
	assert_true(calls_rest_after(&target, 30011, 0));
}

/* Mapping calls that are seen by their lock are no reason; madvise, which takes none, is. */
static void test_calls_rest_beside_mapping_calls(void **state)
{
	struct target target;
	int i;

	(void)state;
	begin(&target, 0);
	target.thinning.calls_may_rest = target.thinning.maps_are_seen = true;
	assert_true(calls_rest_after(&target, 30011, 7001));
	/* One now and then in the windows is one in a thousand. */
	for (i = 0; i < 100; i++) {
		target.rates.advices += i % 30 == 0;
		assert_true(calls_rest_after(&target, 30011, 7001));
	}
	target.rates.advices += 61;
	assert_false(calls_rest_after(&target, 30011, 7001));
	/* Nor where too many take theirs so that they are lost. */
	begin(&target, 0);
	target.thinning.calls_may_rest = target.thinning.maps_are_seen = true;
	assert_true(calls_rest_after(&target, 30011, 7001));
	target.rates.unwatched_maps += 31;
	assert_false(calls_rest_after(&target, 30011, 7001));
}

/* What system calls pay that nobody looks at: little by themselves, reads are the reason then. */
static void test_calls_rest_for_others(void **state)
{
	struct target target;

	(void)state;
	begin(&target, 0);
	target.thinning.calls_may_rest = true;
	assert_false(calls_rest_after(&target, 2003, 0));
	target.thinning.other_calls = 0.03;
	assert_true(calls_rest_after(&target, 2003, 0));
	assert_true(calls_rest_after(&target, 2003, 0));
}

/* Where the kernel does not count them they are all seen, whatever that takes. */
static void test_calls_that_may_not_rest(void **state)
{
	struct target target;
	int i;

	(void)state;
	begin(&target, 0);
	for (i = 0; i < 20; i++)
		assert_false(calls_rest_after(&target, 100003, 0));
}

static void test_start_of_a_command(void **state)
{
	struct target target;
	int i;

	(void)state;
	begin(&target, 1000 * MS);
	for (i = 0; i < 9; i++)
		assert_int_equal(work(&target, 50021, 500), 1);
	assert_true(work(&target, 50021, 500) > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_are_all_looked_at),
		cmocka_unit_test(test_one_slow_event_is_not_many),
		cmocka_unit_test(test_many_are_thinned),
		cmocka_unit_test(test_never_fewer_than_one_in_64),
		cmocka_unit_test(test_cheap_ones_are_no_reason),
		cmocka_unit_test(test_reads_and_walks_count),
		cmocka_unit_test(test_mapping_calls_count),
		cmocka_unit_test(test_faults_rest),
		cmocka_unit_test(test_rest_ends_with_the_storm),
		cmocka_unit_test(test_faults_rest_for_others),
		cmocka_unit_test(test_some_faults_never_rest),
		cmocka_unit_test(test_calls_rest),
		cmocka_unit_test(test_calls_that_wait),
		cmocka_unit_test(test_calls_rest_beside_mapping_calls),
		cmocka_unit_test(test_calls_rest_for_others),
		cmocka_unit_test(test_calls_that_may_not_rest),
		cmocka_unit_test(test_start_of_a_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
