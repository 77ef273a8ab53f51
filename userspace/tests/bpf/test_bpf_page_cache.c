// SPDX-License-Identifier: GPL-2.0
/* What a file's page cache has of a page: trees as lib/xarray.c makes them. */
#include "tests/bpf/memory.h"

static const unsigned ways[] = { 0, 1 };
static struct page_cache cache;

static void begin(unsigned casts)
{
	host_begin();
	KNOB(cfg_casts, casts);
	cache_begin(&cache);
}

static int find(__u64 index, __u64 *entry)
{
	*entry = 77;
	return page_cache_find((__u64)&cache.mapping, index, entry);
}

static void assert_found(__u64 index, int expected, __u64 expected_entry)
{
	__u64 entry;

	assert_int_equal(find(index, &entry), expected);
	assert_int_equal(entry, expected_entry);
}

#define FOR_EACH_WAY(way) for (way = ways; way < ways + 2; way++)

/* A file of no page, and of the first one, have no node. */
static void test_head(void **state)
{
	const unsigned *way;

	FOR_EACH_WAY(way)
	{
		begin(*way);
		assert_found(0, CACHED_NOTHING, 0);
		assert_found(7, CACHED_NOTHING, 0);
		cache.mapping.i_pages.xa_head = (void *)CACHE_FOLIO;
		assert_found(0, CACHED_FOLIO, CACHE_FOLIO);
		assert_found(1, CACHED_NOTHING, 0);
		cache.mapping.i_pages.xa_head = (void *)CACHE_VALUE(4099ULL);
		assert_found(0, CACHED_VALUE, CACHE_VALUE(4099ULL));
		assert_lost_only(0, 0);
	}
}

/* On each level; neighbours are empty, and so is what lies behind the tree. */
static void test_levels(void **state)
{
	static const __u64 indices[] = { 1,	     63,
					 64,	     4095,
					 4096,	     262143,
					 262144,     (1ULL << 24) + 7919,
					 1ULL << 30, (1ULL << 36) - 1 };
	const unsigned *way;
	size_t i;

	FOR_EACH_WAY(way)
	{
		for (i = 0; i < sizeof(indices) / sizeof(indices[0]); i++) {
			begin(*way);
			cache_put(&cache, indices[i], 0, CACHE_FOLIO + i * 64);
			assert_found(indices[i], CACHED_FOLIO, CACHE_FOLIO + i * 64);
			assert_found(indices[i] - 1, CACHED_NOTHING, 0);
			assert_found(indices[i] + 1, CACHED_NOTHING, 0);
			assert_found(1ULL << 40, CACHED_NOTHING, 0);
			cache_put(&cache, indices[i] - 1, 0, CACHE_VALUE(i));
			assert_found(indices[i] - 1, CACHED_VALUE, CACHE_VALUE(i));
			assert_found(indices[i], CACHED_FOLIO, CACHE_FOLIO + i * 64);
		}
		assert_lost_only(0, 0);
	}
}

/* A folio of several pages, or its place on swap: its other slots point to the first. */
static void test_orders(void **state)
{
	static const unsigned orders[] = { 1, 2, 4, 5, 6, 7, 9 };
	__u64 first, count, value = CACHE_VALUE(104729ULL);
	const unsigned *way;
	size_t i;

	FOR_EACH_WAY(way)
	{
		for (i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
			begin(*way);
			count = 1ULL << orders[i];
			first = 4096 + 3 * count;
			cache_put(&cache, first, orders[i], i & 1 ? value : CACHE_FOLIO);
			cache_put(&cache, 0, 0, CACHE_FOLIO);
			assert_found(first, i & 1 ? CACHED_VALUE : CACHED_FOLIO,
				     i & 1 ? value : CACHE_FOLIO);
			assert_found(first + count - 1, i & 1 ? CACHED_VALUE : CACHED_FOLIO,
				     i & 1 ? value : CACHE_FOLIO);
			assert_found(first - 1, CACHED_NOTHING, 0);
			assert_found(first + count, CACHED_NOTHING, 0);
		}
		assert_lost_only(0, 0);
	}
}

/* What is not known is said, and counted: no mapping, a node of another array, one being moved. */
static void test_unknown(void **state)
{
	const unsigned *way;
	__u64 entry;

	FOR_EACH_WAY(way)
	{
		begin(*way);
		assert_int_equal(page_cache_find(0, 1, &entry), CACHED_UNKNOWN);
		assert_int_equal(page_cache_find((__u64)&cache.mapping, 1, NULL), CACHED_UNKNOWN);
		assert_lost_only(LOST_PAGE_CACHE, 1);

		begin(*way);
		cache_put(&cache, 4099, 0, CACHE_FOLIO);
		cache.nodes[cache.used - 1].array = NULL;
		assert_int_equal(find(4099, &entry), CACHED_UNKNOWN);
		assert_lost_only(LOST_PAGE_CACHE, 1);

		begin(*way);
		cache_put(&cache, 4099, 0, CACHE_FOLIO);
		cache_node_of(cache.mapping.i_pages.xa_head)->shift = 60;
		assert_int_equal(find(4099, &entry), CACHED_UNKNOWN);

		/* XA_RETRY_ENTRY: the node is on its way to another place. */
		begin(*way);
		cache_put(&cache, 4099, 0, 256 << 2 | 2);
		assert_int_equal(find(4099, &entry), CACHED_UNKNOWN);
		assert_lost_only(LOST_PAGE_CACHE, 1);

		/* A node below the lowest level. */
		begin(*way);
		cache_put(&cache, 7, 0, (__u64)cache_node(&cache, 0));
		assert_int_equal(find(7, &entry), CACHED_UNKNOWN);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_orders),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
