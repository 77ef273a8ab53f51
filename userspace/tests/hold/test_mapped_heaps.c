// SPDX-License-Identifier: GPL-2.0
/* The main heap's mappings, where the program break could not grow: found, also while they change. */
#include <unistd.h>

#include "tests/hold/looked.h"

#define MAPPED 0x7f0800000000ULL
#define MAPPED_SIZE (16 * VIEW_PAGE)

/* A heap that is full, with the fenceposts that are put where the next is somewhere else. */
static void put_full(struct heap_image *image, uint64_t start, uint64_t end)
{
	uint64_t at = put_chunk(image, start, 0x3010, true);

	at = put_chunk(image, at, end - 32 - at, false);
	at = put_chunk(image, at, 16, true);
	put_chunk(image, at, 16, true);
}

/* Where the break cannot grow: the last mapping has the top, those before it lie behind. */
static void make_mapped(struct heap_image *image)
{
	uint64_t at;

	image_init(image, HEAD_236, true, SIZE);
	image->mappings[0].path = "[heap]";
	/* Another's memory that begins where the heap ends; and some that begins as chunks do. */
	image_add_region(image, END, 4 * VIEW_PAGE);
	image_add_region(image, MAPPED, 4 * MAPPED_SIZE);
	image_finish(image);
	put_word(image, IMAGE_ARENA, 2ULL << 32); /* not contiguous */
	put_word(image, IMAGE_ARENA + HEAD_236 + BIN_WORDS * 8 + 40, SIZE + 3 * MAPPED_SIZE);
	put_full(image, IMAGE_HEAP, END);
	put_chunk(image, MAPPED, 0x2000, true);
	put_chunk(image, MAPPED + 0x2000, 0x2000, true);
	at = put_chunk(image, MAPPED + MAPPED_SIZE, 0x1000, true);
	put_top(image, IMAGE_ARENA, at, MAPPED + 2 * MAPPED_SIZE);
	put_full(image, MAPPED + 2 * MAPPED_SIZE, MAPPED + 3 * MAPPED_SIZE);
	put_full(image, MAPPED + 3 * MAPPED_SIZE, MAPPED + 4 * MAPPED_SIZE);
}

static void test_mapped_heaps(void **state)
{
	struct heap_image image;
	struct looked looked;
	uint64_t size;

	(void)state;
	make_mapped(&image);
	look(&image, 236, &looked);
	assert_null(looked.unknown);
	assert_int_equal(looked.heaps.lost_heaps, 0);
	/* The break's, the one with the top, and two side by side. */
	assert_int_equal(looked.heaps.heaps->len, 3);
	assert_int_equal(all_bytes(&looked.sum.all), SIZE + 3 * MAPPED_SIZE);
	assert_int_equal(looked.sum.all.unread.bytes, 0);
	assert_int_equal(looked.sum.damages, 0);
	assert_kind(&looked, CHUNK_LIVE, 4, 3 * 0x3010 + 0x1000);
	assert_kind(&looked, CHUNK_TOP, 1, MAPPED_SIZE - 0x1000);
	assert_int_equal(looked.sum.all.counts[CHUNK_LARGE], 3);
	assert_int_equal(looked.sum.all.overhead.bytes, 3 * 32);
	/* Nothing goes back from the end of a mapping. */
	assert_int_equal(looked.sum.all.trim_top.bytes, 0);
	forget(&looked);
	/* Behind a page that is not there the last chunks are known by the fenceposts at the end. */
	image.regions[0].states[0] = PAGE_SWAPPED;
	look(&image, 236, &looked);
	assert_int_equal(looked.sum.all.hidden.bytes, 0x3010);
	assert_int_equal(looked.sum.all.counts[CHUNK_LARGE], 3);
	assert_int_equal(all_bytes(&looked.sum.all), SIZE + 3 * MAPPED_SIZE);
	forget(&looked);
	image.regions[0].states[0] = PAGE_RESIDENT;
	/* A header that is not in memory: its heap is not known, and counted. */
	image.regions[3].states[3 * MAPPED_SIZE / VIEW_PAGE] = PAGE_SWAPPED;
	look(&image, 236, &looked);
	assert_int_equal(looked.heaps.lost_heaps, 1);
	assert_int_equal(all_bytes(&looked.sum.all), SIZE + 2 * MAPPED_SIZE);
	assert_int_equal(image.absent_reads, 0);
	forget(&looked);
	/* One that never ends is none. */
	image.regions[3].states[3 * MAPPED_SIZE / VIEW_PAGE] = PAGE_RESIDENT;
	size = get_word(&image, MAPPED + 4 * MAPPED_SIZE - 8);
	put_word(&image, MAPPED + 4 * MAPPED_SIZE - 8, size + 16);
	look(&image, 236, &looked);
	assert_int_equal(looked.heaps.lost_heaps, 1);
	forget(&looked);
	image_free(&image);
}

/* More is taken from the top when its mapping is read: before that, or after it. */
struct moving {
	struct heap_image image;
	bool after;
	bool moved;
};

static bool read_and_move(void *context, uint64_t address, void *to, size_t size)
{
	struct moving *moving = context;
	uint64_t top = MAPPED + MAPPED_SIZE + 0x1000;
	bool read;

	if (size < VIEW_PAGE || address > top || top >= address + size || moving->moved)
		return image_read(&moving->image, address, to, size);
	moving->moved = true;
	read = moving->after && image_read(&moving->image, address, to, size);
	put_top(&moving->image, IMAGE_ARENA, put_chunk(&moving->image, top, 0x230, true),
		MAPPED + 2 * MAPPED_SIZE);
	return moving->after ? read : image_read(&moving->image, address, to, size);
}

static void test_mapped_heap_that_moves(void **state)
{
	struct looked looked;
	int after;

	(void)state;
	for (after = 0; after < 2; after++) {
		struct moving moving = { .after = after };

		make_mapped(&moving.image);
		moving.image.view.read = read_and_move;
		look(&moving.image, 236, &looked);
		assert_true(moving.moved);
		assert_int_equal(looked.heaps.lost_heaps, 0);
		assert_int_equal(looked.heaps.heaps->len, 3);
		assert_int_equal(all_bytes(&looked.sum.all), SIZE + 3 * MAPPED_SIZE);
		assert_kind(&looked, CHUNK_TOP, 1, MAPPED_SIZE - 0x1230);
		forget(&looked);
		image_free(&moving.image);
	}
}

static void break_a_chunk(struct heap_image *image)
{
	put_word(image, MAPPED + 2 * MAPPED_SIZE + 0x3010 + 8, 0x7ffffff1);
}

/*
 * What fits nothing after three looks is corrupt; but where a search has missed a mapping, as while
 * the program changes it, the one that it found may begin at what is left of a chunk.
 */
static void test_a_start_that_may_be_none(void **state)
{
	struct heap_image image;
	struct looked looked;
	int missed;

	(void)state;
	for (missed = 0; missed < 2; missed++) {
		make_mapped(&image);
		image.between = break_a_chunk;
		if (missed)
			image.regions[3].states[3 * MAPPED_SIZE / VIEW_PAGE] = PAGE_SWAPPED;
		look(&image, 236, &looked);
		assert_int_equal(looked.heaps.lost_heaps, missed);
		assert_true(looked.sum.damages > 0);
		assert_int_equal(looked.sum.corrupt, !missed);
		forget(&looked);
		image_free(&image);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mapped_heaps),
		cmocka_unit_test(test_mapped_heap_that_moves),
		cmocka_unit_test(test_a_start_that_may_be_none),
	};

	alarm(100); /* a hang is a failure */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
