// SPDX-License-Identifier: GPL-2.0
/* SQLite's memory, as the command has it: no two pieces overlap, and the limit holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sqlite3.h>
#include <string.h>

#include "recording/recording_memory.h"

#define PIECES 211
#define LIMIT (1 << 20)

/* Small ones, those of pages, and beyond what is kept by size. */
static int size_of_piece(int i)
{
	return 1 + (i * i * 7919) % 20011;
}

static void assert_filled(const unsigned char *piece, int size, int with)
{
	int i;

	for (i = 0; i < size; i++)
		assert_int_equal(piece[i], with & 0xff);
}

static void test_pieces_are_apart(void **state)
{
	unsigned char *pieces[PIECES];
	int i, round;

	(void)state;
	for (i = 0; i < PIECES; i++) {
		pieces[i] = sqlite3_malloc(size_of_piece(i));
		assert_non_null(pieces[i]);
		assert_int_equal((uintptr_t)pieces[i] % 8, 0);
		assert_true(sqlite3_msize(pieces[i]) >= (sqlite3_uint64)size_of_piece(i));
		memset(pieces[i], i, (size_t)sqlite3_msize(pieces[i]));
	}
	/* Some go, others come in their place, or grow and shrink. */
	for (round = 1; round < 5; round++)
		for (i = round; i < PIECES; i += round + 1) {
			int had = size_of_piece(i + round - 1), size = size_of_piece(i + round);

			if (i % 2) {
				sqlite3_free(pieces[i]);
				pieces[i] = sqlite3_malloc(size);
			} else {
				had = (int)sqlite3_msize(pieces[i]);
				pieces[i] = sqlite3_realloc(pieces[i], size);
				assert_filled(pieces[i], had < size ? had : size, i);
			}
			assert_non_null(pieces[i]);
			memset(pieces[i], i, (size_t)sqlite3_msize(pieces[i]));
		}
	for (i = 0; i < PIECES; i++) {
		assert_filled(pieces[i], (int)sqlite3_msize(pieces[i]), i);
		sqlite3_free(pieces[i]);
	}
}

static void test_the_limit_holds(void **state)
{
	void *pieces[2 * LIMIT / 4096], *large;
	int i, had = 0;

	(void)state;
	recording_memory_limit(LIMIT);
	for (i = 0; i < 2 * LIMIT / 4096; i++) {
		pieces[i] = sqlite3_malloc(4096);
		had += pieces[i] != NULL;
	}
	assert_true(had > 0 && had <= LIMIT / 4096);
	for (i = 0; i < 2 * LIMIT / 4096; i++)
		sqlite3_free(pieces[i]);
	/* All of it was given back, and may be had again. */
	large = sqlite3_malloc(LIMIT / 2);
	assert_non_null(large);
	assert_null(sqlite3_realloc(large, 2 * LIMIT));
	large = sqlite3_realloc(large, LIMIT / 4 * 3);
	assert_non_null(large);
	sqlite3_free(large);
	recording_memory_limit(INT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces_are_apart),
		cmocka_unit_test(test_the_limit_holds),
	};

	recording_memory_of_one_thread();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
