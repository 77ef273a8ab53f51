// SPDX-License-Identifier: GPL-2.0
/* Blocks that pin, of which there are too many to keep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hold/pinning.h"

/* Of very many a part stays, with the bytes of all; each site's share is what it was, nearly. */
static void test_thinned_pins(void **state)
{
	struct pinning pinning;
	uint64_t all = 0, odd = 0, sum = 0, odd_sum = 0;
	guint i;

	(void)state;
	pinning_init(&pinning);
	for (i = 1; i <= PINNING_MAX + 7919; i++) {
		const struct pinning_block block = { i * 16ULL, 96, i % 13 + 1 };

		all += block.bytes;
		odd += i % 3 ? 0 : block.bytes;
		pinning_add(&pinning, &block);
	}
	pinning_thin(&pinning, 8192);
	assert_in_range(pinning.blocks->len, 4096, 8192);
	for (i = 0; i < pinning.blocks->len; i++) {
		const struct pinning_block *block =
			&g_array_index(pinning.blocks, struct pinning_block, i);

		sum += block->bytes;
		odd_sum += block->address / 16 % 3 ? 0 : block->bytes;
	}
	assert_int_equal(sum, all);
	/* A third of it: five standard deviations of 4096 drawings are a ninth of that. */
	assert_in_range(odd_sum, odd - odd / 9, odd + odd / 9);
	pinning_free(&pinning);
}

/* One is one, and none is none. */
static void test_few(void **state)
{
	const struct pinning_block block = { 16, 96, 7 };
	struct pinning pinning;

	(void)state;
	pinning_init(&pinning);
	pinning_thin(&pinning, 0);
	assert_int_equal(pinning.blocks->len, 0);
	pinning_add(&pinning, &block);
	pinning_thin(&pinning, 0);
	assert_int_equal(pinning.blocks->len, 1);
	assert_int_equal(g_array_index(pinning.blocks, struct pinning_block, 0).bytes, 7);
	pinning_free(&pinning);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thinned_pins),
		cmocka_unit_test(test_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
