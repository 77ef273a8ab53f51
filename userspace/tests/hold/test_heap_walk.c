// SPDX-License-Identifier: GPL-2.0
/* Heaps made by hand, also damaged ones: what is live, what is free and how, what would come back. */
#include <unistd.h>

#include "tests/hold/looked.h"

static void test_kinds(void **state)
{
	struct heap_image image;
	struct looked looked;
	uint64_t at = IMAGE_HEAP, unsorted;

	(void)state;
	image_init(&image, HEAD_236, true, SIZE);
	at = put_chunk(&image, at, 0x100, true);
	at = put_chunk(&image, at, 0x200, false);
	at = put_chunk(&image, at, 0x30, true);
	at = put_chunk(&image, at, 3 * VIEW_PAGE, false);
	at = put_chunk(&image, at, 0x40, true);
	unsorted = at;
	at = put_chunk(&image, at, 0x800, false);
	at = put_chunk(&image, at, 0x50, true);
	put_word(&image, IMAGE_ARENA + HEAD_236, unsorted);
	put_word(&image, IMAGE_ARENA + HEAD_236 + 8, unsorted);
	put_word(&image, unsorted + 16, IMAGE_ARENA + HEAD_236 - 16);
	put_word(&image, unsorted + 24, IMAGE_ARENA + HEAD_236 - 16);
	put_top(&image, IMAGE_ARENA, at, END);
	look(&image, 236, &looked);
	assert_null(looked.unknown);
	assert_kind(&looked, CHUNK_LIVE, 4, 0x100 + 0x30 + 0x40 + 0x50);
	assert_kind(&looked, CHUNK_SMALL, 1, 0x200);
	assert_kind(&looked, CHUNK_LARGE, 1, 3 * VIEW_PAGE);
	assert_kind(&looked, CHUNK_UNSORTED, 1, 0x800);
	assert_kind(&looked, CHUNK_TOP, 1, END - at);
	assert_int_equal(all_bytes(&looked.sum.all), SIZE);
	assert_int_equal(looked.sum.all.system_bytes, SIZE);
	assert_int_equal(looked.sum.damages, 0);
	/* The large one has two whole pages; the top all but the page it begins on, and MINSIZE. */
	assert_int_equal(looked.sum.all.trim.bytes - looked.sum.all.trim_top.bytes, 2 * VIEW_PAGE);
	assert_int_equal(looked.sum.all.trim_top.bytes, (END - at - 33) / VIEW_PAGE * VIEW_PAGE);
	/* What is not given back lies behind these. */
	assert_int_equal(g_array_index(looked.sum.pins, struct pin, 0).size, 0x30);
	assert_int_equal(g_array_index(looked.sum.pins, struct pin, 0).bytes, VIEW_PAGE);
	forget(&looked);
	image_free(&image);
}

/* Live chunks by address: before what stays, and the last one, above the largest free stretch. */
static void test_pinning(void **state)
{
	const struct pinning_block *block;
	const struct pinning_end *end;
	struct heap_image image;
	struct looked looked;
	uint64_t at = IMAGE_HEAP, before, last;

	(void)state;
	image_init(&image, HEAD_236, true, SIZE);
	before = at;
	at = put_chunk(&image, at, 0x40, true);
	at = put_chunk(&image, at, 0x200, false);
	at = put_chunk(&image, at, 0x30, true);
	at = put_chunk(&image, at, 20 * VIEW_PAGE, false);
	last = at;
	at = put_chunk(&image, at, 0x60, true);
	put_top(&image, IMAGE_ARENA, at, END);
	look(&image, 236, &looked);
	assert_null(looked.unknown);
	assert_int_equal(looked.sum.pinning.blocks->len, 2);
	block = &g_array_index(looked.sum.pinning.blocks, struct pinning_block, 0);
	assert_int_equal(block->address, before + 16);
	assert_int_equal(block->size, 0x40);
	assert_int_equal(block->bytes, 0x200);
	assert_int_equal(looked.sum.pinning.ends->len, 1);
	end = &g_array_index(looked.sum.pinning.ends, struct pinning_end, 0);
	assert_int_equal(end->address, last + 16);
	assert_int_equal(end->size, 0x60);
	assert_int_equal(end->above, 0x60);
	assert_int_equal(end->below, 20 * VIEW_PAGE);
	forget(&looked);
	image_free(&image);
}

/* By hand from mtrim(): a chunk of so many bytes at so many behind a page's start. */
static void test_trim_rule(void **state)
{
	static const struct {
		uint64_t before;
		uint64_t size;
		uint64_t bytes;
	} cases
		[] = {
			{ 0x20, 0x1000, 0 },
			{ 0xfd0, 0x1030, 0x1000 }, /* its page begins right behind its fields */
			{ 0xfe0, 0x1fe0, 0 }, /* 16 bytes on: the page after, which is not whole */
			{ 0xfe0, 0x2020, 0x1000 },
			{ 0xfd0, 0x1020, 0 },
			{ 0x20, 0x1fe0, 0x1000 },
			{ 0x20, 0x1fd0, 0 },
		};
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct heap_image image;
		struct looked looked;
		uint64_t at = IMAGE_HEAP;

		image_init(&image, HEAD_236, true, SIZE);
		at = put_chunk(&image, at, cases[i].before, true);
		at = put_chunk(&image, at, cases[i].size, false);
		at = put_chunk(&image, at, 0x20, true);
		put_top(&image, IMAGE_ARENA, at, END);
		look(&image, 236, &looked);
		assert_int_equal(looked.sum.all.trim.bytes - looked.sum.all.trim_top.bytes,
				 cases[i].bytes);
		forget(&looked);
		image_free(&image);
	}
}

/* Three chunks of 0x40 in a fast list, each beside a free one: joined they have a whole page. */
static void check_fast(uint64_t head, bool mangled, unsigned int version)
{
	struct heap_image image;
	struct looked looked;
	uint64_t at = IMAGE_HEAP, fast[3];
	size_t i;

	image_init(&image, head, mangled, SIZE);
	for (i = 0; i < 3; i++) {
		at = put_chunk(&image, at, 0x20, true);
		fast[i] = at;
		at = put_chunk(&image, at, 0x40, true);
		at = put_chunk(&image, at, 0x1fa0, false);
	}
	at = put_chunk(&image, at, 0x20, true);
	put_word(&image, IMAGE_ARENA + head - 16 - (FAST_BINS - 2) * 8,
		 put_fast_list(&image, fast, 3));
	put_top(&image, IMAGE_ARENA, at, END);
	look(&image, version, &looked);
	assert_null(looked.unknown);
	assert_kind(&looked, CHUNK_FAST, 3, 3 * 0x40);
	assert_kind(&looked, CHUNK_LIVE, 4, 4 * 0x20);
	assert_kind(&looked, CHUNK_LARGE, 3, 3 * 0x1fa0ULL);
	assert_int_equal(looked.sum.cached.torn, 0);
	/* 0x20 + 0x40 + 0x1fa0 is two pages: of each the second one. */
	assert_int_equal(looked.sum.all.trim.bytes - looked.sum.all.trim_top.bytes, 3 * VIEW_PAGE);
	forget(&looked);
	image_free(&image);
}

static void test_fast(void **state)
{
	(void)state;
	check_fast(HEAD_236, true, 236);
	check_fast(HEAD_236, false, 231);
	check_fast(HEAD_226, false, 226);
}

/*
 * A list with more chunks than are kept, which leads to and fro: what is not found to be in it may
 * be, and is not called live. What is in no list is live, also where it was not kept.
 */
static void test_fast_cut(void **state)
{
	const unsigned int count = 41, most = 16;
	struct heap_image image;
	struct looked looked;
	uint64_t at = IMAGE_HEAP, chunks[41], order[41];
	unsigned int i, fast;

	(void)state;
	for (fast = 0; fast < 2; fast++) {
		image_init(&image, HEAD_236, true, SIZE);
		at = IMAGE_HEAP;
		for (i = 0; i < count; i++) {
			chunks[i] = at;
			at = put_chunk(&image, at, 0x20, true);
			/* Between them what can be in no list. */
			put_word(&image, at + 16, 0x1234567);
			at = put_chunk(&image, at, 0x40, true);
		}
		put_top(&image, IMAGE_ARENA, at, END);
		/* The first of them was freed last; then every seventh, round and round. */
		for (i = 0; i < count; i++)
			order[i] = chunks[i * 7 % count];
		put_fast_list(&image, order, count);
		if (fast)
			put_word(&image, IMAGE_ARENA + HEAD_236 - 16 - FAST_BINS * 8, order[0]);
		look_with(&image, 236, most, &looked);
		assert_null(looked.unknown);
		assert_int_equal(looked.sum.cached.torn, 0);
		assert_int_equal(looked.sum.cached.cut, fast);
		if (fast) {
			assert_kind(&looked, CHUNK_FAST, 2, 2 * 0x20);
			assert_kind(&looked, CHUNK_LIVE, count, count * 0x40);
			assert_int_equal(looked.sum.all.unfollowed.bytes, (count - 2) * 0x20);
		} else {
			assert_kind(&looked, CHUNK_LIVE, 2 * count, count * 0x60);
			assert_int_equal(looked.sum.all.unfollowed.bytes, 0);
		}
		assert_int_equal(all_bytes(&looked.sum.all), SIZE);
		forget(&looked);
		/* With room for all of them. */
		if (fast) {
			look(&image, 236, &looked);
			assert_kind(&looked, CHUNK_FAST, count, count * 0x20);
			assert_int_equal(looked.sum.cached.cut, 0);
			forget(&looked);
		}
		image_free(&image);
	}
}

/* A cache with two chunks of 0x30 and one of 0x410; the counts are of this many bytes. */
static void check_cache(uint64_t head, bool mangled, unsigned int version, uint64_t size,
			unsigned int bins, unsigned int count_bytes)
{
	struct heap_image image;
	struct looked looked;
	uint64_t at = IMAGE_HEAP, cache, small[2], large;
	unsigned int last = (0x410 - 0x20) / 16, i;
	uint8_t counts[152] = { 0 };

	image_init(&image, head, mangled, SIZE);
	cache = at;
	at = put_chunk(&image, at, size, true);
	for (i = 0; i < 2; i++) {
		small[i] = at;
		at = put_chunk(&image, at, 0x30, true);
		at = put_chunk(&image, at, 0x30, true);
	}
	large = at;
	at = put_chunk(&image, at, 0x410, true);
	put_top(&image, IMAGE_ARENA, at, END);
	for (i = 0; i < bins; i++)
		counts[i * count_bytes] = version >= 242 ? 7 : 0;
	counts[count_bytes] = version >= 242 ? 5 : 2;
	counts[last * count_bytes] = version >= 242 ? 6 : 1;
	for (i = 0; i < bins * count_bytes; i += 8) {
		uint64_t word;

		memcpy(&word, counts + i, sizeof(word));
		put_word(&image, cache + 16 + i, word);
	}
	at = cache + 16 + bins * count_bytes;
	put_word(&image, at + 8, put_cache_list(&image, small, 2));
	put_word(&image, at + last * 8ULL, put_cache_list(&image, &large, 1));
	look(&image, version, &looked);
	assert_null(looked.unknown);
	assert_int_equal(looked.sum.cached.caches, 1);
	assert_int_equal(looked.sum.cached.torn, 0);
	assert_kind(&looked, CHUNK_CACHED, 3, 2 * 0x30 + 0x410);
	assert_kind(&looked, CHUNK_LIVE, 3, size + 2 * 0x30);
	forget(&looked);
	image_free(&image);
}

/* More blocks of a cache's size than there may be caches: the one behind them is found. */
static void test_cache_behind_blocks(void **state)
{
	const uint64_t size = 2048 * VIEW_PAGE, end = IMAGE_HEAP + size;
	struct heap_image image;
	struct looked looked;
	uint64_t at = IMAGE_HEAP, cache, small;
	unsigned int i;

	(void)state;
	image_init(&image, HEAD_236, true, size);
	for (i = 0; i < CACHES_MAX + 100; i++) {
		memset(image.regions[0].bytes + (at - IMAGE_HEAP) + 16, 0x40, 0x280);
		at = put_chunk(&image, at, 0x290, true);
	}
	cache = at;
	at = put_chunk(&image, at, 0x290, true);
	small = at;
	at = put_chunk(&image, at, 0x20, true);
	put_word(&image, cache + 16, 1);
	put_word(&image, cache + 16 + 128, put_cache_list(&image, &small, 1));
	put_top(&image, IMAGE_ARENA, at, end);
	look(&image, 236, &looked);
	assert_int_equal(looked.sum.damages, 0);
	assert_int_equal(looked.sum.cached.caches, 1);
	assert_kind(&looked, CHUNK_CACHED, 1, 0x20);
	forget(&looked);
	image_free(&image);
}

static void test_cache(void **state)
{
	(void)state;
	check_cache(HEAD_226, false, 226, 0x250, 64, 1);
	check_cache(HEAD_236, false, 231, 0x290, 64, 2);
	check_cache(HEAD_236, true, 236, 0x290, 64, 2);
	check_cache(HEAD_236, true, 242, 0x300, 76, 2);
	check_cache(HEAD_243, true, 243, 0x300, 76, 2);
}

/* A thread's arena with two heaps: the second has the top. */
static void make_arena(struct heap_image *image)
{
	const uint64_t first = IMAGE_OTHER, second = IMAGE_OTHER + HEAP_BYTES;
	const uint64_t arena = first + 48, size = 16 * VIEW_PAGE;
	uint64_t at;

	image_init(image, HEAD_236, true, SIZE);
	put_top(image, IMAGE_ARENA, put_chunk(image, IMAGE_HEAP, 0x20, true), END);
	image_add_region(image, first, size);
	image_add_region(image, second, size);
	image_finish(image);
	put_word(image, first, arena);
	put_word(image, first + 16, size);
	put_word(image, second, arena);
	put_word(image, second + 8, first);
	put_word(image, second + 16, size);
	put_arena(image, arena, 0, IMAGE_ARENA, 2 * size);
	put_word(image, IMAGE_ARENA + HEAD_236 + BIN_WORDS * 8 + 16, arena);
	at = (arena + HEAD_236 + BIN_WORDS * 8 + 56 + 15) & ~15ULL;
	at = put_chunk(image, at, 0x1000, true);
	at = put_chunk(image, at, first + size - 32 - at, false);
	at = put_chunk(image, at, 16, true);
	put_word(image, at + 8, 1); /* the second fencepost */
	image->previous_in_use = true;
	at = put_chunk(image, second + 48, 0x2000, true);
	put_top(image, arena, at, second + size);
}

static void test_arenas(void **state)
{
	struct heap_image image;
	struct looked looked;
	const struct arena_sum *sum;

	(void)state;
	make_arena(&image);
	look(&image, 236, &looked);
	assert_null(looked.unknown);
	assert_int_equal(looked.heaps.arenas->len, 2);
	assert_int_equal(looked.heaps.heaps->len, 3);
	assert_int_equal(looked.heaps.lost_heaps, 0);
	sum = &g_array_index(looked.sum.arenas, struct arena_sum, 1);
	assert_int_equal(all_bytes(sum), 32 * VIEW_PAGE);
	assert_int_equal(sum->system_bytes, 32 * VIEW_PAGE);
	assert_int_equal(sum->counts[CHUNK_LIVE], 2);
	assert_int_equal(sum->bytes[CHUNK_LIVE].bytes, 0x3000);
	assert_int_equal(sum->counts[CHUNK_LARGE], 1);
	assert_int_equal(sum->unread.bytes, 0);
	/* The top of such an arena is not trimmed. */
	assert_int_equal(sum->trim_top.bytes, 0);
	assert_int_equal(sum->bytes[CHUNK_TOP].bytes, 16 * VIEW_PAGE - 48 - 0x2000);
	forget(&looked);
	image_free(&image);
}

/* Chains and rings that do not end end here, and what was not found is counted. */
static void test_loops(void **state)
{
	struct heap_image image;
	struct looked looked;

	(void)state;
	make_arena(&image); /* the heaps are each other's previous one */
	put_word(&image, IMAGE_OTHER + HEAP_BYTES + 8, IMAGE_OTHER + HEAP_BYTES);
	look(&image, 236, &looked);
	assert_null(looked.unknown);
	assert_int_equal(looked.heaps.lost_heaps, 1);
	forget(&looked);
	/* The ring goes round without main_arena. */
	put_word(&image, IMAGE_OTHER + 48 + HEAD_236 + BIN_WORDS * 8 + 16, IMAGE_OTHER + 48);
	look(&image, 236, &looked);
	assert_non_null(looked.unknown);
	forget(&looked);
	image_free(&image);
}

static void test_fast_loop(void **state)
{
	struct heap_image image;
	struct looked looked;
	uint64_t at = IMAGE_HEAP, fast[2];

	(void)state;
	image_init(&image, HEAD_236, true, SIZE);
	fast[0] = at;
	at = put_chunk(&image, at, 0x40, true);
	fast[1] = at;
	at = put_chunk(&image, at, 0x40, true);
	put_top(&image, IMAGE_ARENA, at, END);
	put_word(&image, IMAGE_ARENA + HEAD_236 - 16 - (FAST_BINS - 2) * 8,
		 put_fast_list(&image, fast, 2));
	put_word(&image, fast[1] + 16, image_link(&image, fast[1], fast[0]));
	look(&image, 236, &looked);
	assert_kind(&looked, CHUNK_FAST, 2, 0x80);
	assert_int_equal(looked.sum.cached.torn, 1);
	forget(&looked);
	image_free(&image);
}

/* A size that cannot be, in the middle of many chunks: that one is not read, the others are. */
static void test_damage(void **state)
{
	struct heap_image image;
	struct looked looked;
	uint64_t at = IMAGE_HEAP, broken = 0;
	unsigned int i;

	(void)state;
	image_init(&image, HEAD_236, true, SIZE);
	for (i = 0; i < 200; i++) {
		if (i == 100)
			broken = at;
		at = put_chunk(&image, at, 0x100, true);
	}
	put_top(&image, IMAGE_ARENA, at, END);
	put_word(&image, broken + 8, 0xdeadbeefdeadbeef);
	look(&image, 236, &looked);
	assert_int_equal(looked.sum.damages, 1);
	assert_int_equal(looked.sum.damage.address, broken);
	assert_true(looked.sum.corrupt);
	assert_int_equal(looked.sum.read_again, 2);
	/* With the one before it, of which nothing says whether it is free. */
	assert_int_equal(looked.sum.all.unread.bytes, 0x200);
	assert_kind(&looked, CHUNK_LIVE, 198, 198 * 0x100);
	assert_int_equal(all_bytes(&looked.sum.all), SIZE);
	forget(&looked);
	image_free(&image);
}

/* What others took by sbrk(2) lies between two fenceposts and the next chunk: no damage. */
static void test_foreign(void **state)
{
	struct heap_image image;
	struct looked looked;
	uint64_t at = IMAGE_HEAP, foreign, i;

	(void)state;
	image_init(&image, HEAD_236, true, SIZE);
	at = put_chunk(&image, at, 0x100, true);
	at = put_chunk(&image, at, 0x200, false);
	at = put_chunk(&image, at, 16, true);
	foreign = put_chunk(&image, at, 16, true);
	at = foreign + 2 * VIEW_PAGE;
	for (i = foreign; i < at; i += 8)
		put_word(&image, i, 0x4141414141414141);
	for (i = 0; i < 40; i++)
		at = put_chunk(&image, at, 0x100, true);
	put_top(&image, IMAGE_ARENA, at, END);
	look(&image, 236, &looked);
	assert_int_equal(looked.sum.damages, 0);
	assert_false(looked.sum.corrupt);
	assert_int_equal(looked.sum.all.unread.bytes, 2 * VIEW_PAGE);
	assert_int_equal(looked.sum.all.overhead.bytes, 32);
	assert_kind(&looked, CHUNK_LIVE, 41, 41 * 0x100);
	assert_int_equal(all_bytes(&looked.sum.all), SIZE);
	forget(&looked);
	/* One fencepost says nothing: behind it is damage. */
	put_word(&image, foreign - 8, 0x4141414141414141);
	look(&image, 236, &looked);
	assert_int_equal(looked.sum.damages, 1);
	assert_true(looked.sum.corrupt);
	forget(&looked);
	image_free(&image);
}

#define REPAIRED (IMAGE_HEAP + 0x100)

static void repair(void *context)
{
	put_word(context, REPAIRED + 8, 0x101);
}

/* What was being changed is whole after a moment: then nothing is amiss. */
static void test_changing(void **state)
{
	struct heap_image image;
	struct looked looked;
	uint64_t at = IMAGE_HEAP;
	unsigned int i;

	(void)state;
	image_init(&image, HEAD_236, true, SIZE);
	for (i = 0; i < 200; i++)
		at = put_chunk(&image, at, 0x100, true);
	put_top(&image, IMAGE_ARENA, at, END);
	put_word(&image, REPAIRED + 8, 0x9991);
	image.view.pause = repair;
	look(&image, 236, &looked);
	assert_int_equal(looked.sum.damages, 0);
	assert_false(looked.sum.corrupt);
	assert_int_equal(looked.sum.all.unread.bytes, 0);
	assert_kind(&looked, CHUNK_LIVE, 200, 200 * 0x100);
	forget(&looked);
	image_free(&image);
}

/* Nothing fits anywhere: the arena's own pointers say where the top begins. */
static void test_garbage(void **state)
{
	struct heap_image image;
	struct looked looked;
	uint64_t at = IMAGE_HEAP + 32 * VIEW_PAGE, i;

	(void)state;
	image_init(&image, HEAD_236, true, SIZE);
	for (i = IMAGE_HEAP; i < at; i += 8)
		put_word(&image, i, 0x4141414141414141);
	put_top(&image, IMAGE_ARENA, at, END);
	look(&image, 236, &looked);
	assert_int_equal(looked.sum.all.unread.bytes, 32 * VIEW_PAGE);
	assert_kind(&looked, CHUNK_TOP, 1, 32 * VIEW_PAGE);
	forget(&looked);
	image_free(&image);
}

/* Pages that are swapped out are not read; what lies in them is not known, and the rest is. */
static void test_swapped(void **state)
{
	struct heap_image image;
	struct looked looked;
	uint64_t at = IMAGE_HEAP;
	unsigned int i;

	(void)state;
	image_init(&image, HEAD_236, true, SIZE);
	for (i = 0; i < 60 * 16; i++)
		at = put_chunk(&image, at, 0x100, true);
	put_top(&image, IMAGE_ARENA, at, END);
	memset(image.regions[0].states + 20, PAGE_SWAPPED, 2);
	look(&image, 236, &looked);
	assert_int_equal(image.absent_reads, 0);
	assert_int_equal(looked.sum.damages, 0);
	assert_int_equal(looked.sum.all.hidden.swapped, 2 * VIEW_PAGE);
	assert_int_equal(looked.sum.all.hidden.bytes, 2 * VIEW_PAGE + 0x100);
	assert_int_equal(looked.sum.all.counts[CHUNK_LIVE], 60 * 16 - 33);
	assert_int_equal(all_bytes(&looked.sum.all), SIZE);
	forget(&looked);
	image_free(&image);
}

/* Of libc's data what was never touched is not read, and what is swapped out is only for need. */
static void test_data_pages(void **state)
{
	struct heap_image image;
	struct looked looked;

	(void)state;
	image_init(&image, HEAD_236, true, SIZE);
	put_top(&image, IMAGE_ARENA, put_chunk(&image, IMAGE_HEAP, 0x100, true), END);
	image.regions[1].states[1] = PAGE_ABSENT;
	look(&image, 236, &looked);
	assert_null(looked.unknown);
	forget(&looked);
	image.regions[1].states[1] = PAGE_SWAPPED;
	look(&image, 236, &looked);
	assert_null(looked.unknown);
	assert_int_equal(image.absent_reads, 0);
	forget(&looked);
	image.regions[1].states[0] = PAGE_SWAPPED;
	look(&image, 236, &looked);
	assert_null(looked.unknown);
	assert_true(image.absent_reads > 0);
	assert_kind(&looked, CHUNK_LIVE, 1, 0x100);
	forget(&looked);
	image_free(&image);
}

/* A chunk over pages of all states: its bytes by them. */
static void test_states(void **state)
{
	struct heap_image image;
	struct looked looked;
	uint64_t at = IMAGE_HEAP;

	(void)state;
	image_init(&image, HEAD_236, true, SIZE);
	at = put_chunk(&image, at, 0x20, true);
	at = put_chunk(&image, at, 8 * VIEW_PAGE, false);
	at = put_chunk(&image, at, 0x20, true);
	put_top(&image, IMAGE_ARENA, at, END);
	memset(image.regions[0].states + 2, PAGE_SWAPPED, 3);
	memset(image.regions[0].states + 5, PAGE_ABSENT, 2);
	look(&image, 236, &looked);
	assert_int_equal(looked.sum.all.bytes[CHUNK_LARGE].bytes, 8 * VIEW_PAGE);
	assert_int_equal(looked.sum.all.bytes[CHUNK_LARGE].swapped, 3 * VIEW_PAGE);
	assert_int_equal(looked.sum.all.bytes[CHUNK_LARGE].resident, 3 * VIEW_PAGE);
	/* Seven whole pages, of which two are resident. */
	assert_int_equal(looked.sum.all.trim.resident - looked.sum.all.trim_top.resident,
			 2 * VIEW_PAGE);
	assert_int_equal(looked.sum.all.trim.swapped, 3 * VIEW_PAGE);
	forget(&looked);
	image_free(&image);
}

/* No main_arena, and two. */
static void test_not_found(void **state)
{
	struct heap_image image;
	struct looked looked;
	uint64_t second = IMAGE_DATA + 0x1000;

	(void)state;
	image_init(&image, HEAD_236, true, SIZE);
	put_top(&image, IMAGE_ARENA, IMAGE_HEAP, END);
	put_arena(&image, second, IMAGE_HEAP, second, SIZE);
	look(&image, 236, &looked);
	assert_string_equal(looked.unknown, "two places in its data look like glibc's main arena");
	forget(&looked);
	memset(image.regions[1].bytes, 0, IMAGE_DATA_SIZE);
	look(&image, 236, &looked);
	assert_non_null(looked.unknown);
	forget(&looked);
	image_free(&image);
}

/* Chunks of any size and kind in any order, against what was put there. */
static void test_any(void **state)
{
	unsigned int round, random = 1;

	(void)state;
	for (round = 0; round < 200; round++) {
		uint64_t at = IMAGE_HEAP, live = 0, free_bytes = 0, live_count = 0;
		struct heap_image image;
		struct looked looked;
		bool last_free = false;

		image_init(&image, HEAD_236, true, SIZE);
		while (END - at > 4 * VIEW_PAGE) {
			uint64_t size = 32 + 16 * (rand_r(&random) % (1U << rand_r(&random) % 10));
			bool in_use = last_free || rand_r(&random) % 2;

			at = put_chunk(&image, at, size, in_use);
			last_free = !in_use;
			live_count += in_use;
			live += in_use ? size : 0;
			free_bytes += in_use ? 0 : size;
		}
		if (last_free) {
			at = put_chunk(&image, at, 32, true);
			live_count++;
			live += 32;
		}
		put_top(&image, IMAGE_ARENA, at, END);
		look(&image, 236, &looked);
		assert_int_equal(looked.sum.damages, 0);
		assert_kind(&looked, CHUNK_LIVE, live_count, live);
		assert_int_equal(looked.sum.all.bytes[CHUNK_SMALL].bytes +
					 looked.sum.all.bytes[CHUNK_LARGE].bytes,
				 free_bytes);
		assert_int_equal(all_bytes(&looked.sum.all), SIZE);
		forget(&looked);
		image_free(&image);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_pinning),
		cmocka_unit_test(test_trim_rule),
		cmocka_unit_test(test_fast),
		cmocka_unit_test(test_fast_cut),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_arenas),
		cmocka_unit_test(test_loops),
		cmocka_unit_test(test_fast_loop),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_swapped),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_not_found),
		cmocka_unit_test(test_any),
		cmocka_unit_test(test_changing),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_data_pages),
		cmocka_unit_test(test_cache_behind_blocks),
	};

	alarm(100); /* a hang is a failure */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
