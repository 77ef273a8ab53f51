// SPDX-License-Identifier: GPL-2.0
/* How much memory samples say that stores are spread over, against how much there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib.h>

#include "session/store_spread.h"

#define STACK 0x1234ULL
#define BLOCK 0x7f0000000123ULL

static void add(struct store_spread *spread, GRand *rand, uint64_t bytes, int samples)
{
	int i;

	for (i = 0; i < samples; i++)
		store_spread_add(spread, STACK,
				 BLOCK + (uint64_t)(g_rand_double(rand) * (double)bytes));
}

static void test_sizes(void **state)
{
	static const uint64_t sizes[] = { 8192, 20011, 100003, 1000003, 3000017 };
	GRand *rand = g_rand_new_with_seed(4099);
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(sizes); i++) {
		struct store_spread *spread = store_spread_new();
		uint64_t bytes;

		add(spread, rand, sizes[i], 97);
		bytes = store_spread_bytes(spread, STACK);
		assert_in_range(bytes, sizes[i] / 2, 2 * sizes[i] + 4096);
		assert_int_equal(store_spread_bytes(spread, STACK + 1), 0);
		store_spread_next(spread);
		/* Until there are samples that say something else. */
		assert_int_equal(store_spread_bytes(spread, STACK), bytes);
		store_spread_free(spread);
	}
	g_rand_free(rand);
}

static void test_few_samples(void **state)
{
	struct store_spread *spread = store_spread_new();
	int i;

	(void)state;
	for (i = 0; i < 3; i++)
		store_spread_add(spread, STACK, BLOCK);
	assert_int_equal(store_spread_bytes(spread, STACK), 0);
	store_spread_next(spread);
	store_spread_add(spread, STACK, BLOCK);
	assert_in_range(store_spread_bytes(spread, STACK), 4096, 4200);
	/* Each at a page of its own: that says little of how many there are, until there are many. */
	for (i = 0; i < 47; i++)
		store_spread_add(spread, STACK + 1, BLOCK + (1ULL << 20) * (uint64_t)i);
	assert_int_equal(store_spread_bytes(spread, STACK + 1), 0);
	store_spread_add(spread, STACK + 1, BLOCK + (1ULL << 20) * 47);
	assert_int_equal(store_spread_bytes(spread, STACK + 1), 48 * 48 * 4096);
	/* No more than they lie apart. */
	for (i = 0; i < 48; i++)
		store_spread_add(spread, STACK + 2, BLOCK + 10000ULL * (uint64_t)i);
	assert_in_range(store_spread_bytes(spread, STACK + 2), 470000, 490100);
	for (i = 0; i < 11; i++)
		store_spread_add(spread, STACK + 3, BLOCK + 4100ULL * (uint64_t)i);
	assert_in_range(store_spread_bytes(spread, STACK + 3), 49100, 49300);
	store_spread_free(spread);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_few_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
