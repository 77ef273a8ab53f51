// SPDX-License-Identifier: GPL-2.0
/* Counters of other allocators, made by hand: found where they agree with each other, or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "hold/allocator_counters.h"
#include "tests/hold/heap_image.h"

#define CODE 0x7f3300000000ULL
#define MEMORY 0x7f4400000000ULL
#define MEMORY_SIZE (100 * VIEW_PAGE)
#define ARENA (MEMORY + 0x10c0)
#define OTHER_ARENA (MEMORY + 0x30000)
#define SHARD 0x2a00 /* where struct pa_shard_s begins, from the arena's start */
#define FIRST 9816   /* to the state of the first set of free pages, and what follows */
#define APART 19440
#define SECOND 9664

static const struct allocator_counters *read_as(struct heap_image *image, enum allocator_kind kind)
{
	static struct allocator_counters counters;
	const struct allocator_module module = { .kind = kind, .inode = 7 };
	const struct mapping *data[] = { maps_find(&image->maps, IMAGE_DATA) };
	const struct counters_place place = {
		.view = &image->view,
		.maps = &image->maps,
		.module = &module,
		.data = data,
		.data_count = 1,
	};

	allocator_counters_read(&place, &counters);
	return &counters;
}

static void init(struct heap_image *image)
{
	size_t i;

	*image = (struct heap_image){ 0 };
	image_add_region(image, IMAGE_DATA, IMAGE_DATA_SIZE);
	image_add_region(image, CODE, VIEW_PAGE);
	image_add_region(image, MEMORY, MEMORY_SIZE);
	image_finish(image);
	for (i = 0; i < image->count; i++)
		if (image->mappings[i].start == CODE)
			image->mappings[i] = (struct mapping){ .start = CODE,
							       .end = CODE + VIEW_PAGE,
							       .inode = 7,
							       .exec = true,
							       .read = true,
							       .path = "/lib/a.so" };
}

static void put_words(struct heap_image *image, uint64_t at, const uint64_t *words, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		put_word(image, at + 8 * i, words[i]);
}

static void test_tcmalloc(void **state)
{
	/* system, free, unmapped, committed; scavenges; counts and bytes. */
	static const uint64_t sums[] = { 9 << 20, 3 << 20, 2 << 20, 7 << 20, 0,	     5,
					 8 << 20, 1,	   1 << 20, 4,	     9 << 20 };
	const struct allocator_counters *counters;
	struct heap_image image;

	(void)state;
	init(&image);
	assert_false(read_as(&image, ALLOCATOR_TCMALLOC)->known);
	put_words(&image, IMAGE_DATA + 0x1238, sums, G_N_ELEMENTS(sums));
	counters = read_as(&image, ALLOCATOR_TCMALLOC);
	assert_true(counters->known);
	assert_int_equal(counters->active, 4 << 20);
	assert_int_equal(counters->dirty, 3 << 20);
	assert_int_equal(counters->retained, 2 << 20);
	/* Another allocator's. */
	assert_false(read_as(&image, ALLOCATOR_MIMALLOC)->known);
	/* One page more than was committed. */
	put_word(&image, IMAGE_DATA + 0x1238 + 24, (7 << 20) + 4096);
	assert_false(read_as(&image, ALLOCATOR_TCMALLOC)->known);
	image_free(&image);
}

static void test_mimalloc(void **state)
{
	static const uint64_t sums[] = { 96 << 20, 32 << 20, 80 << 20, 64 << 20,
					 50 << 20, 10 << 20, 45 << 20, 40 << 20 };
	const struct allocator_counters *counters;
	struct heap_image image;

	(void)state;
	init(&image);
	put_words(&image, IMAGE_DATA + 0x2008, sums, G_N_ELEMENTS(sums));
	counters = read_as(&image, ALLOCATOR_MIMALLOC);
	assert_true(counters->known);
	assert_int_equal(counters->committed, 40 << 20);
	assert_int_equal(counters->retained, 24 << 20);
	/* More than there ever was. */
	put_word(&image, IMAGE_DATA + 0x2008 + 16, 60 << 20);
	assert_false(read_as(&image, ALLOCATOR_MIMALLOC)->known);
	image_free(&image);
}

/* Active pages, a table of functions, and three caches of two sets each. */
static void put_jemalloc(struct heap_image *image, uint64_t arena, uint64_t active,
			 const uint64_t pages[3])
{
	const uint64_t functions = arena + SHARD + 24;
	unsigned int i;

	put_word(image, arena + SHARD, MEMORY);
	put_word(image, arena + SHARD + 8, active);
	put_word(image, arena + SHARD + 16, 0x100);
	for (i = 0; i < 7; i++)
		put_word(image, functions + 8 * i, CODE + 16 * i);
	for (i = 0; i < 3; i++) {
		const uint64_t set = functions + FIRST + (uint64_t)i * APART;

		put_word(image, set - 8, pages[i]);
		put_word(image, set, i + 1);
		put_word(image, set + SECOND - 8, 1);
		put_word(image, set + SECOND, i + 1);
	}
}

static void test_jemalloc(void **state)
{
	static const uint64_t some[] = { 1009, 13, 211 }, others[] = { 2, 3, 5 };
	const struct allocator_counters *counters;
	struct heap_image image;

	(void)state;
	init(&image);
	put_jemalloc(&image, ARENA, 499, some);
	put_jemalloc(&image, OTHER_ARENA, 7, others);
	put_word(&image, IMAGE_DATA + 0x100, ARENA);
	/* Also known by another place of it: it counts once. */
	put_word(&image, IMAGE_DATA + 0x108, ARENA + 0x40);
	counters = read_as(&image, ALLOCATOR_JEMALLOC);
	assert_true(counters->known);
	assert_int_equal(counters->active, 499 * VIEW_PAGE);
	assert_int_equal(counters->dirty, (1009 + 1) * VIEW_PAGE);
	assert_int_equal(counters->muzzy, (13 + 1) * VIEW_PAGE);
	assert_int_equal(counters->retained, (211 + 1) * VIEW_PAGE);
	put_word(&image, IMAGE_DATA + 0x1100, OTHER_ARENA);
	counters = read_as(&image, ALLOCATOR_JEMALLOC);
	assert_int_equal(counters->active, (499 + 7) * VIEW_PAGE);
	assert_int_equal(counters->dirty, (1009 + 2 + 2) * VIEW_PAGE);
	/* Swapped out or never there: nothing of it is read. */
	memset(image_region(&image, MEMORY)->states, PAGE_SWAPPED, MEMORY_SIZE / VIEW_PAGE);
	assert_false(read_as(&image, ALLOCATOR_JEMALLOC)->known);
	assert_int_equal(image.absent_reads, 0);
	image_free(&image);
}

/* A place where all may be the beginning of what is looked for: the search ends. */
static void test_made_up(void **state)
{
	struct heap_image image;
	uint64_t at;

	(void)state;
	init(&image);
	for (at = MEMORY; at < MEMORY + MEMORY_SIZE; at += 8)
		put_word(&image, at, at < MEMORY + 0x18000 && at % 64 ? CODE : 1);
	for (at = IMAGE_DATA; at < IMAGE_DATA + IMAGE_DATA_SIZE; at += 8)
		put_word(&image, at, MEMORY + (at - IMAGE_DATA) * 8);
	alarm(60); /* a hang is a failure */
	assert_false(read_as(&image, ALLOCATOR_JEMALLOC)->known);
	assert_false(read_as(&image, ALLOCATOR_GO)->known);
	image_free(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tcmalloc),
		cmocka_unit_test(test_mimalloc),
		cmocka_unit_test(test_jemalloc),
		cmocka_unit_test(test_made_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
