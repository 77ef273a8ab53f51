// SPDX-License-Identifier: GPL-2.0
/* Pages of files in the page cache: first, again, in vain; sweeps and no order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ledger/file_pages.h"

#define DEV 1
#define INODE 7
#define PAGES 1009

static struct file_site last;

static void take(void *context, const struct file_site *site)
{
	(void)context;
	last = *site;
}

/* A range that one request has brought in, for the page `wanted`; 0 requests: more of the last. */
static void fill(struct file_pages *pages, uint64_t start, uint64_t count, uint64_t wanted,
		 uint64_t requests)
{
	file_pages_fill(pages, &(struct memtoll_fill){
				       .dev = DEV,
				       .inode = INODE,
				       .flags = FILL_FAULT,
				       .start = start,
				       .pages = count,
				       .requests = requests,
				       .first_wanted = wanted,
				       .last_wanted = wanted,
				       .bytes = PAGES * 4096ULL,
			       });
}

static void use(struct file_pages *pages, uint64_t page, uint64_t count)
{
	file_pages_use(pages, DEV, INODE, FILL_FAULT, page, count);
}

static void test_sweeps(void **state)
{
	struct file_pages *pages = file_pages_new();
	uint64_t pass, page;

	(void)state;
	for (pass = 0; pass < 4; pass++)
		for (page = 0; page < PAGES; page += 32) {
			uint64_t count = PAGES - page < 32 ? PAGES - page : 32;

			fill(pages, page, count, page, 1);
			use(pages, page, count);
		}
	file_pages_each(pages, take, NULL);
	assert_int_equal(last.bytes, PAGES * 4096ULL);
	assert_int_equal(last.first_pages, PAGES);
	assert_int_equal(last.again_pages, 3 * PAGES);
	assert_int_equal(last.distinct_pages, PAGES);
	assert_int_equal(last.max_returns, 3);
	assert_int_equal(last.vain_pages, 0);
	assert_int_equal(last.used_pages, 4 * PAGES);
	/* Also what came before the sweep was believed. */
	assert_int_equal(last.first_sequential_pages, PAGES);
	assert_int_equal(last.again_sequential_pages, 3 * PAGES);
	file_pages_free(pages);
}

/* Read-ahead of 256 pages is thrown out but for 64 of them, and brought in again, behind its end. */
static void test_read_ahead_in_vain(void **state)
{
	struct file_pages *pages = file_pages_new();
	uint64_t page;

	(void)state;
	for (page = 0; page < 1024; page += 64) {
		fill(pages, page, 256, page, 1);
		use(pages, page, 64);
	}
	file_pages_each(pages, take, NULL);
	assert_int_equal(last.first_pages, 1024 + 192);
	assert_int_equal(last.again_pages, 0);
	assert_int_equal(last.vain_pages, 16 * 256 - 1024 - 192);
	assert_int_equal(last.used_pages, 1024);
	assert_int_equal(last.first_sequential_pages, 1024 + 192);
	file_pages_free(pages);
}

static void test_no_order(void **state)
{
	struct file_pages *pages = file_pages_new();
	uint64_t i, seed = 3;

	(void)state;
	for (i = 0; i < 2003; i++) {
		uint64_t page;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		page = (seed >> 33) % 100003;
		/* The second half of what is around it: some is there. */
		fill(pages, page, 4, page, 1);
		fill(pages, page + 9, 7, 0, 0);
	}
	file_pages_each(pages, take, NULL);
	assert_int_equal(last.requests, 2003);
	assert_in_range(last.first_sequential_pages + last.again_sequential_pages, 0, 11 * 100);
	assert_int_equal(last.first_pages + last.again_pages + last.vain_pages, 2003 * 11);
	file_pages_free(pages);
}

/* What is used before it came in was there: that it comes then is no return. */
static void test_use_of_what_did_not_come(void **state)
{
	struct file_pages *pages = file_pages_new();

	(void)state;
	use(pages, 0, PAGES);
	fill(pages, 0, 4, 2, 1);
	use(pages, 600, 1ULL << 40);
	fill(pages, 0, 4, 2, 1);
	file_pages_each(pages, take, NULL);
	assert_int_equal(last.first_pages, 4);
	/* The page that was wanted is used, the others were brought in vain. */
	assert_int_equal(last.again_pages, 1);
	assert_int_equal(last.vain_pages, 3);
	file_pages_free(pages);
}

/* Only tables of what came in are looked at, by number or one after the other; ends are exact. */
static void test_use_of_a_part(void **state)
{
	struct file_pages *pages = file_pages_new();

	(void)state;
	fill(pages, 0, 3000, 0, 0);
	use(pages, 511, 2);
	use(pages, 2999, UINT64_MAX - 2999);
	use(pages, 1, 0);
	use(pages, UINT64_MAX, 2);
	file_pages_each(pages, take, NULL);
	assert_int_equal(last.used_pages, 3);
	use(pages, 100, 2899);
	file_pages_each(pages, take, NULL);
	assert_int_equal(last.used_pages, 3 + 2899 - 2);
	use(pages, 0, 1ULL << 62);
	file_pages_each(pages, take, NULL);
	assert_int_equal(last.used_pages, 3000);
	file_pages_free(pages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sweeps),
		cmocka_unit_test(test_read_ahead_in_vain),
		cmocka_unit_test(test_no_order),
		cmocka_unit_test(test_use_of_what_did_not_come),
		cmocka_unit_test(test_use_of_a_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
