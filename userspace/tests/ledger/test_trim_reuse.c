// SPDX-License-Identifier: GPL-2.0
/* Pages that a trim would have given back, and which of them blocks take: each counts once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ledger/trim_reuse.h"

#define PAGE 4096ULL
#define PID 42
#define BEGAN 7919

/* 10 pages, 5 that are not resident, and 3. */
static const struct free_range ranges[] = {
	{ 100 * PAGE, 110 * PAGE, true },
	{ 110 * PAGE, 115 * PAGE, false },
	{ 200 * PAGE, 203 * PAGE, true },
};

static struct trim_reuse *begun(void)
{
	struct trim_reuse *reuse = trim_reuse_new();

	trim_reuse_begin(reuse, PID, BEGAN, ranges, 3);
	return reuse;
}

static void take(struct trim_reuse *reuse, pid_t pid, uint64_t address, uint64_t size)
{
	const struct memtoll_block block = { .tgid = (uint32_t)pid, .addr = address, .size = size };

	trim_reuse_block(reuse, &block);
}

static void assert_used(const struct trim_reuse *reuse, uint64_t used)
{
	struct trim_reused reused = { 0 };

	assert_true(trim_reuse_get(reuse, PID, &reused));
	assert_int_equal(reused.since_ns, BEGAN);
	assert_int_equal(reused.pages, 13);
	assert_int_equal(reused.used, used);
}

static void test_blocks(void **state)
{
	struct trim_reuse *reuse = begun();

	(void)state;
	assert_used(reuse, 0);
	take(reuse, PID, 101 * PAGE + 16, 2 * PAGE);
	assert_used(reuse, 3);
	take(reuse, PID, 101 * PAGE + 16, 2 * PAGE);
	assert_used(reuse, 3);
	/* What is in no range, of another process, or a free. */
	take(reuse, PID, 300 * PAGE, PAGE);
	take(reuse, PID + 1, 105 * PAGE, PAGE);
	take(reuse, PID, 0, 0);
	take(reuse, PID, 112 * PAGE, PAGE);
	assert_used(reuse, 3);
	take(reuse, PID, 108 * PAGE, 93 * PAGE);
	assert_used(reuse, 6);
	/* More than there is, by a size that cannot be. */
	take(reuse, PID, 100 * PAGE, UINT64_MAX);
	assert_used(reuse, 6);
	take(reuse, PID, 1, UINT64_MAX - 1);
	assert_used(reuse, 13);
	trim_reuse_free(reuse);
}

/* What is free no more was taken, also by blocks that nobody saw; what was given back was not. */
static void test_looks(void **state)
{
	static const struct free_range later[] = {
		{ 100 * PAGE, 104 * PAGE, true },
		{ 106 * PAGE, 109 * PAGE, false },
		{ 200 * PAGE, 203 * PAGE, true },
	};
	struct trim_reuse *reuse = begun();

	(void)state;
	trim_reuse_look(reuse, PID, ranges, 3);
	assert_used(reuse, 0);
	trim_reuse_look(reuse, PID, later, 3);
	assert_used(reuse, 3);
	trim_reuse_look(reuse, PID, NULL, 0);
	assert_used(reuse, 13);
	trim_reuse_free(reuse);
}

static void test_processes(void **state)
{
	struct trim_reuse *reuse = begun();
	struct trim_reused reused;

	(void)state;
	assert_false(trim_reuse_get(reuse, PID + 1, &reused));
	trim_reuse_look(reuse, PID + 1, ranges, 3);
	take(reuse, PID, 101 * PAGE, PAGE);
	trim_reuse_begin(reuse, PID, BEGAN, ranges, 3);
	assert_used(reuse, 0);
	trim_reuse_forget(reuse, PID);
	assert_false(trim_reuse_get(reuse, PID, &reused));
	trim_reuse_free(reuse);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_looks),
		cmocka_unit_test(test_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
