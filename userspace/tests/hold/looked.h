/* SPDX-License-Identifier: GPL-2.0 */
/* looked.h: what is found in a heap made by hand (heap_image.h). */
#ifndef MEMTOLL_LOOKED_H
#define MEMTOLL_LOOKED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hold/heap_sum.h"
#include "tests/hold/heap_image.h"

#define HEAD_226 104
#define HEAD_236 112
#define HEAD_243 24
#define SIZE (64 * VIEW_PAGE)
#define END (IMAGE_HEAP + SIZE)

struct looked {
	const char *unknown;
	struct malloc_heaps heaps;
	struct heap_walk walk;
	struct heap_sum sum;
};

/* kept_most: of the walk; 0: as it is by itself. */
static inline void look_with(struct heap_image *image, unsigned int version, uint64_t kept_most,
			     struct looked *looked)
{
	const struct mapping *data[] = { maps_find(&image->maps, IMAGE_DATA) };

	*looked = (struct looked){ 0 };
	looked->unknown = malloc_heaps_find(&image->view, &image->maps, data, 1, IMAGE_PAR, version,
					    &looked->heaps);
	if (looked->unknown)
		return;
	if (image->between)
		image->between(image);
	heap_walk_init(&looked->walk, &image->view, &looked->heaps, false);
	if (kept_most)
		looked->walk.kept_most = kept_most;
	heap_walk_run(&looked->walk);
	heap_sum_make(&looked->walk, &looked->sum);
}

static inline void look(struct heap_image *image, unsigned int version, struct looked *looked)
{
	look_with(image, version, 0, looked);
}

static inline void forget(struct looked *looked)
{
	heap_sum_free(&looked->sum);
	heap_walk_free(&looked->walk);
	malloc_heaps_free(&looked->heaps);
}

/* Every byte of the heaps is of some kind. */
static inline uint64_t all_bytes(const struct arena_sum *sum)
{
	return arena_free(sum).bytes + sum->bytes[CHUNK_LIVE].bytes + sum->overhead.bytes +
	       sum->unread.bytes + sum->hidden.bytes + sum->unfollowed.bytes;
}

static inline void assert_kind(const struct looked *looked, enum chunk_kind kind, uint64_t count,
			       uint64_t bytes)
{
	assert_int_equal(looked->sum.all.counts[kind], count);
	assert_int_equal(looked->sum.all.bytes[kind].bytes, bytes);
}

#endif /* MEMTOLL_LOOKED_H */
