// SPDX-License-Identifier: GPL-2.0
/* Where a sum's additions go: one row for all CPUs, then one on each, and what is full loses none. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include <cmocka.h>

#include "state/row.bpf.h"

SUM_TABLE(sums, 5, 3, __u32, __u64);

#define CHANCE_KEEPS 1
#define CHANCE_MOVES ROW_SHARED_ADDITIONS

static void begin(void)
{
	kernel_reset();
	kernel_map(&sums, MAP_HASH, sizeof(__u32), sizeof(__u64), 5);
	kernel_map(&sums_shared, MAP_HASH, sizeof(__u32), sizeof(__u64), 3);
	kernel.random = CHANCE_KEEPS;
}

static bool add(__u32 key, __u64 value)
{
	static const __u64 zero;
	__u64 *row = row_get(&sums, &sums_shared, &key, &zero);

	if (row)
		*row += value;
	return row;
}

static __u64 in(const void *table, __u32 key)
{
	const __u64 *row = kernel_map_lookup(table, &key);

	return row ? *row : 0;
}

static void test_a_row_begins_shared(void **state)
{
	int i;

	begin();
	for (i = 0; i < 1009; i++)
		assert_true(add(7, 3));
	assert_int_equal(in(&sums_shared, 7), 3 * 1009);
	assert_int_equal(kernel_map_count(&sums), 0);
}

static void test_what_is_added_to_often_has_its_own(void **state)
{
	int i;

	begin();
	for (i = 0; i < 13; i++)
		assert_true(add(7, 1));
	kernel.random = CHANCE_MOVES;
	assert_true(add(7, 1));
	kernel.random = CHANCE_KEEPS;
	for (i = 0; i < 17; i++)
		assert_true(add(7, 1));
	assert_int_equal(in(&sums_shared, 7), 13);
	assert_int_equal(in(&sums, 7), 18);
}

/* By chance, as in the kernel: neither at once nor never. */
static void test_how_often(void **state)
{
	__u64 moved_after = 0;
	__u32 key;

	for (key = 0; key < 499; key++) {
		begin();
		kernel.random = 0;
		while (!in(&sums, key))
			assert_true(add(key, 1));
		moved_after += in(&sums_shared, key);
	}
	/* The first is made, not found; the mean of a geometric distribution, five of its deviations. */
	assert_in_range(moved_after / 499, ROW_SHARED_ADDITIONS - 15, ROW_SHARED_ADDITIONS + 15);
}

static void test_full(void **state)
{
	__u32 key;

	begin();
	for (key = 0; key < 8; key++)
		assert_true(add(key, 1));
	assert_int_equal(kernel_map_count(&sums_shared), 3);
	assert_int_equal(kernel_map_count(&sums), 5);
	assert_false(add(8, 1));
	/* There is no room on the CPUs: it stays where it is. */
	kernel.random = CHANCE_MOVES;
	assert_true(add(2, 1));
	assert_int_equal(in(&sums_shared, 2), 2);
	assert_true(add(3, 1));
	assert_int_equal(in(&sums, 3), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_row_begins_shared),
		cmocka_unit_test(test_what_is_added_to_often_has_its_own),
		cmocka_unit_test(test_how_often),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
