// SPDX-License-Identifier: GPL-2.0
/* The cache of prices: what is read back is what was measured, of this key and recent. */
#define _GNU_SOURCE 1

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "measured.h"
#include "probes/price_cache.h"
#include "programs.h"

static const struct price_key key = {
	.mechanism = UPROBE_MULTI,
	.uprobes = true,
	.set = { .faults = true, .mappings = true, .samples = true, .reads = true },
};

static struct calibration_result prices_of(double hit_ns, double error_ns)
{
	const struct price price = { .hit_ns = hit_ns, .error_ns = error_ns };

	return (struct calibration_result){
		.malloc = price,
		.free = price,
		.fault = price,
		.map = price,
		.read = price,
		.fault_ns = 7,
		.loops_per_s = 11,
	};
}

static char *prices_path(void)
{
	return text("%s/prices", directory);
}

static int fresh(void **state)
{
	char *path = prices_path();

	(void)state;
	run(text("rm -rf %s", path));
	setenv("MEMTOLL_PRICES", path, 1);
	free(path);
	return 0;
}

/* How long ago the prices were measured that are to be used. */
static double keep(struct calibration_result *prices)
{
	double age_s = -1;

	price_cache_write(&key, prices, &age_s);
	return age_s;
}

static bool is_kept(const struct price_key *asked)
{
	struct calibration_result read;
	double age_s;

	return price_cache_read(asked, &read, &age_s);
}

static void test_round_trip(void **state)
{
	struct calibration_result sure = prices_of(1009, 13), read;
	double age_s = -1;

	(void)state;
	assert_false(is_kept(&key));
	keep(&sure);
	assert_true(price_cache_read(&key, &read, &age_s));
	assert_memory_equal(&read, &sure, sizeof(read));
	assert_true(age_s >= 0 && age_s < PRICES_SECONDS);
}

static void test_other_keys(void **state)
{
	struct calibration_result sure = prices_of(1009, 13);
	struct price_key other = key;

	(void)state;
	keep(&sure);
	other.mechanism = UPROBE_PERF;
	assert_false(is_kept(&other));
	other = key;
	other.uprobes = false;
	assert_false(is_kept(&other));
	other = key;
	other.set.reads = false;
	assert_false(is_kept(&other));
	assert_true(is_kept(&key));
}

/* What is unsure is measured again, three times at most, and the surest is used. */
static void test_unsure(void **state)
{
	struct calibration_result rough = prices_of(1009, 700), better = prices_of(997, 500), read;
	double age_s;

	(void)state;
	assert_true(keep(&better) == 0);
	assert_false(is_kept(&key));
	/* Ages are whole seconds. */
	sleep(1);
	assert_true(keep(&rough) >= 1);
	assert_memory_equal(&rough, &better, sizeof(rough));
	assert_false(is_kept(&key));
	keep(&rough);
	assert_true(price_cache_read(&key, &read, &age_s));
	assert_memory_equal(&read, &better, sizeof(read));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_round_trip, fresh),
		cmocka_unit_test_setup(test_other_keys, fresh),
		cmocka_unit_test_setup(test_unsure, fresh),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
