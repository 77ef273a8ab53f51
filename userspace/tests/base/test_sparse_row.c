// SPDX-License-Identifier: GPL-2.0
/* Rows of counters are read as they were written, whatever was stored before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib.h>
#include <string.h>

#include "base/sparse_row.h"

#define WORDS 79
#define ROUNDS 997

static void test_nothing_is_zeros(void **state)
{
	uint64_t words[WORDS];
	size_t i;

	(void)state;
	memset(words, 0xff, sizeof(words));
	sparse_row_read(NULL, words, WORDS);
	for (i = 0; i < WORDS; i++)
		assert_int_equal(words[i], 0);
}

/* Each round sets and clears some words, so that rows grow, shrink, and keep their length. */
static void test_rows_come_back(void **state)
{
	uint64_t words[WORDS] = {}, read[WORDS];
	struct sparse_row *row = NULL;
	GRand *random = g_rand_new_with_seed(20011);
	int round, i;

	(void)state;
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < round % 7; i++)
			words[g_rand_int_range(random, 0, WORDS)] =
				g_rand_int(random) & 1 ? 0 : (uint64_t)g_rand_int(random) << 20;
		row = sparse_row_write(row, words, WORDS);
		memset(read, 0xff, sizeof(read));
		sparse_row_read(row, read, WORDS);
		assert_memory_equal(read, words, sizeof(words));
	}
	g_rand_free(random);
	g_free(row);
}

static void test_first_and_last_word(void **state)
{
	uint64_t words[SPARSE_ROW_WORDS] = {
		[0] = 1, [63] = 2, [64] = 3, [SPARSE_ROW_WORDS - 1] = 4
	};
	uint64_t read[SPARSE_ROW_WORDS];
	struct sparse_row *row = sparse_row_write(NULL, words, SPARSE_ROW_WORDS);

	(void)state;
	sparse_row_read(row, read, SPARSE_ROW_WORDS);
	assert_memory_equal(read, words, sizeof(words));
	g_free(row);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_zeros),
		cmocka_unit_test(test_rows_come_back),
		cmocka_unit_test(test_first_and_last_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
