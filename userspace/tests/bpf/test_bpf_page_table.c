// SPDX-License-Identifier: GPL-2.0
/*
 * The walk over page tables: entries made by hand after the Intel SDM, vol. 3A, 4.5, for four
 * levels and for five, with every way by which the kernel's words are read.
 */
#include "tests/bpf/memory.h"

#define ADDRESS 0x00007f12345678d0ULL
#define FRAME 0x123457ULL

struct way {
	unsigned levels;
	unsigned casts;
};

static const struct way ways[] = { { 4, 0 }, { 4, 1 }, { 5, 0 }, { 5, 1 } };

static void begin(const struct way *way)
{
	host_begin();
	KNOB(cfg_casts, way->casts);
	tables_begin(way->levels);
}

static int walk_to(__u64 address, struct walked *walked)
{
	*walked = (struct walked){ .entry = 1, .slot = 1, .pages = 1 };
	return walk_tables(walked, table_root(), address);
}

#define FOR_EACH_WAY(way) for (way = ways; way < ways + ARRAY_SIZE(ways); way++)
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

static void test_page(void **state)
{
	const struct way *way;
	struct walked walked;

	FOR_EACH_WAY(way)
	{
		begin(way);
		set_entry(ADDRESS, 1, page_entry(FRAME));
		assert_int_equal(walk_to(ADDRESS, &walked), WALK_ENTRY);
		assert_int_equal(walked.entry, page_entry(FRAME));
		assert_int_equal(walked.at, entry_place(ADDRESS, 1));
		assert_int_equal(walked.slot, entry_place(ADDRESS, 1));
		assert_int_equal(walked.table_at, entry_place(ADDRESS, 2));
		assert_int_equal(walked.table, kernel_peek_word(KERNEL, entry_place(ADDRESS, 2)));
		assert_int_equal(walked.pages, 1);
		assert_int_equal(walked_pfn(&walked, ADDRESS), FRAME);
	}
}

/* Addresses that differ in one index alone have entries of their own. */
static void test_each_index_counts(void **state)
{
	const struct way *way;
	struct walked walked;
	unsigned level;
	__u64 other;

	FOR_EACH_WAY(way)
	{
		begin(way);
		set_entry(ADDRESS, 1, page_entry(FRAME));
		for (level = 1; level <= way->levels; level++) {
			other = ADDRESS ^ 1ULL << (12 + 9 * (level - 1));
			assert_int_not_equal(walk_to(other, &walked), WALK_ENTRY);
			set_entry(other, 1, page_entry(FRAME + level));
			assert_int_equal(walk_to(other, &walked), WALK_ENTRY);
			assert_int_equal(walked_pfn(&walked, other), FRAME + level);
		}
		assert_int_equal(walk_to(ADDRESS, &walked), WALK_ENTRY);
		assert_int_equal(walked_pfn(&walked, ADDRESS), FRAME);
	}
}

/* With four levels, bits 48 and up are copies of bit 47: no index. */
static void test_first_level_of_four(void **state)
{
	struct walked walked;

	begin(&ways[0]);
	set_entry(ADDRESS, 1, page_entry(FRAME));
	assert_int_equal(walk_to(ADDRESS | 1ULL << 48, &walked), WALK_ENTRY);
	begin(&ways[2]);
	set_entry(ADDRESS, 1, page_entry(FRAME));
	assert_int_equal(walk_to(ADDRESS | 1ULL << 48, &walked), WALK_NO_TABLE);
}

/*
 * Empty: in the last table a page is missing; above, there is no table, and room for a huge page.
 */
static void test_empty(void **state)
{
	const struct way *way;
	struct walked walked;
	unsigned level;

	FOR_EACH_WAY(way)
	{
		for (level = 1; level <= way->levels; level++) {
			begin(way);
			set_entry(ADDRESS, level, 0);
			assert_int_equal(walk_to(ADDRESS, &walked),
					 level == 1 ? WALK_NONE : WALK_NO_TABLE);
			assert_int_equal(walked.entry, 0);
			assert_int_equal(walked.slot, level == 1 ? entry_place(ADDRESS, 1) : 0);
		}
	}
}

/*
 * PS in a pmd: 2 MiB; in a pud: 1 GiB. Bit 12 of such an entry is PAT, not the frame's (4-17,
 * 4-18).
 */
static void test_huge(void **state)
{
	const __u64 pat = 1ULL << 12;
	const struct way *way;
	struct walked walked;

	FOR_EACH_WAY(way)
	{
		begin(way);
		set_entry(ADDRESS, 2, page_entry(0x12400) | PS | pat);
		assert_int_equal(walk_to(ADDRESS, &walked), WALK_HUGE);
		assert_int_equal(walked.pages, 512);
		assert_int_equal(walked.slot, 0);
		assert_int_equal(walked.at, entry_place(ADDRESS, 2));
		assert_int_equal(walked_pfn(&walked, ADDRESS), 0x12400 + (ADDRESS >> 12) % 512);
		begin(way);
		set_entry(ADDRESS, 3, page_entry(0x140000) | PS | pat);
		assert_int_equal(walk_to(ADDRESS, &walked), WALK_HUGE);
		assert_int_equal(walked.pages, 262144);
		assert_int_equal(walked_pfn(&walked, ADDRESS), 0x140000 + (ADDRESS >> 12) % 262144);
	}
}

/* What is not present and not empty ends the walk, wherever: a page of 4 KiB or 2 MiB on swap. */
static void test_not_present(void **state)
{
	const struct way *way;
	struct walked walked;

	FOR_EACH_WAY(way)
	{
		begin(way);
		set_entry(ADDRESS, 1, swap_entry(3, 0x1234567));
		assert_int_equal(walk_to(ADDRESS, &walked), WALK_ENTRY);
		assert_int_equal(walked.entry, swap_entry(3, 0x1234567));
		assert_int_equal(walked.slot, entry_place(ADDRESS, 1));
		begin(way);
		set_entry(ADDRESS, 2, swap_entry(3, 0x1234567));
		assert_int_equal(walk_to(ADDRESS, &walked), WALK_ENTRY);
		assert_int_equal(walked.slot, 0);
	}
}

static void test_no_tables(void **state)
{
	struct walked walked;

	begin(&ways[0]);
	assert_int_equal(walk_tables(NULL, table_root(), ADDRESS), WALK_FAILED);
	assert_int_equal(walk_tables(&walked, 0, ADDRESS), WALK_FAILED);
	assert_int_equal(walked.entry, 0);
	assert_int_equal(walked.slot, 0);
}

/* The table is still that one, and the entry empty: then a page is mapped there next. */
static void test_slot_is_empty(void **state)
{
	const struct way *way;
	struct walked walked;
	__u64 next = ADDRESS + MEMTOLL_PAGE_SIZE;

	FOR_EACH_WAY(way)
	{
		begin(way);
		set_entry(ADDRESS, 1, page_entry(FRAME));
		walk_to(ADDRESS, &walked);
		assert_true(slot_is_empty(walked.table, walked.table_at, next));
		assert_false(slot_is_empty(walked.table, walked.table_at, ADDRESS));
		set_entry(next, 1, swap_entry(1, 17));
		assert_false(slot_is_empty(walked.table, walked.table_at, next));
		set_entry(next, 1, 0);
		/* The table was given back, and a huge page is there. */
		set_entry(next, 2, page_entry(0x12400) | PS);
		assert_false(slot_is_empty(walked.table, walked.table_at, next));
	}
}

/*
 * do_fault_around() maps within 16 pages that begin on a boundary of 16, but not before the area
 * nor beyond the table. The window is these, and one on either side.
 */
static void test_window(void **state)
{
	const __u64 table = 0x7f1200000000ULL, far = table - 512 * MEMTOLL_PAGE_SIZE;

#define PAGE_OF(n) (table + (n)*MEMTOLL_PAGE_SIZE)
	assert_int_equal(window_first(PAGE_OF(0), far), 0);
	assert_int_equal(window_first(PAGE_OF(15), far), 0);
	assert_int_equal(window_first(PAGE_OF(16), far), 15);
	assert_int_equal(window_first(PAGE_OF(100) + 17, far), 95);
	/* The area begins within the 16. */
	assert_int_equal(window_first(PAGE_OF(100), PAGE_OF(98)), 97);
	assert_int_equal(window_first(PAGE_OF(100), PAGE_OF(100)), 99);
	/* At the table's end there is none beyond. */
	assert_int_equal(window_first(PAGE_OF(511), far), 512 - 18);
}

static void test_window_present(void **state)
{
	static const unsigned mapped[] = { 95, 97, 101, 103, 112 };
	const __u64 table = 0x7f1200000000ULL;
	__u64 entries[WINDOW_PAGES], slot;
	__u32 expected = 0;
	unsigned i;

	begin(&ways[0]);
	for (i = 0; i < ARRAY_SIZE(mapped); i++) {
		set_entry(PAGE_OF(mapped[i]), 1, page_entry(FRAME + i));
		expected |= 1U << (mapped[i] - 95);
	}
	/* None of the window, and not present. */
	set_entry(PAGE_OF(94), 1, page_entry(FRAME));
	set_entry(PAGE_OF(113), 1, page_entry(FRAME));
	set_entry(PAGE_OF(98), 1, swap_entry(0, 2));
	slot = entry_place(PAGE_OF(100), 1);
	assert_int_equal(window_present(slot, 95, entries), expected);
	kernel_unmap(KERNEL, slot);
	assert_int_equal(window_present(slot, 95, entries), 0);
}

/*
 * A node of a maple tree, as lib/maple_tree.c has them: its parent, the pivots, the slots; with so
 * many slots in use, and the end of each ten pages beyond the one before.
 */
static __u64 maple_node(__u64 words[32], unsigned type, unsigned used)
{
	unsigned pivots = type == 3 ? 9 : 15, i;

	memset(words, 0, 256);
	for (i = 0; i < used && i < pivots; i++)
		words[1 + i] = (i + 1) * 10 * KERNEL_PAGE - 1;
	for (i = 0; i < used; i++)
		words[1 + pivots + i] = 4096 * (7919 + i);
	return (__u64)words | type << 3;
}

static void assert_slot(__u64 node, __u64 address, __u64 number)
{
	assert_int_equal(maple_slot(node, address), number < 16 ? 4096 * (7919 + number) : 0);
}

/* The first slot whose end is not below the address, in nodes of each kind with each number. */
static void test_area_slot(void **state)
{
	static __u64 words[32] __attribute__((aligned(256)));
	static const unsigned kinds[] = { 1, 2, 3 };
	unsigned kind, used, i;
	__u64 node;

	host_begin();
	kernel_object(words, sizeof(words));
	for (kind = 0; kind < 3; kind++) {
		for (used = 1; used <= (kinds[kind] == 3 ? 10 : 16); used++) {
			node = maple_node(words, kinds[kind], used);
			for (i = 0; i < used; i++) {
				assert_slot(node, i * 10 * KERNEL_PAGE, i);
				assert_slot(node, (i + 1) * 10 * KERNEL_PAGE - 1, i);
			}
		}
		/* Beyond the last there is nothing, and in no node. */
		assert_slot(maple_node(words, kinds[kind], 4), 40 * KERNEL_PAGE, 16);
		assert_slot(maple_node(words, kinds[kind], 4) & 255, 0, 16);
	}
	assert_slot(maple_node(words, 0, 4), 0, 16);
	assert_slot(maple_node(words, 4, 4), 0, 16);
	/* An end of ~0 is beyond all addresses. */
	node = maple_node(words, 1, 4);
	words[4] = ~0ULL;
	assert_slot(node, 1ULL << 46, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_each_index_counts),
		cmocka_unit_test(test_first_level_of_four),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_huge),
		cmocka_unit_test(test_not_present),
		cmocka_unit_test(test_no_tables),
		cmocka_unit_test(test_slot_is_empty),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_window_present),
		cmocka_unit_test(test_area_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
