// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz_heap.c: the memory of a process that uses glibc's allocator, all of which is the process's. An
 * input is struct input_head, and then the bytes of its regions.
 */
#define _GNU_SOURCE 1

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "hold/allocator_counters.h"
#include "hold/heap_sum.h"
#include "hold/mapped_chunks.h"
#include "tests/hold/heap_image.h"

#define PAGES_LEAST 1
#define PAGES_MOST 32

struct input_head {
	uint64_t count;
	struct {
		uint64_t start;
		uint64_t pages;
	} regions[IMAGE_REGIONS];
	uint64_t par;
	uint64_t version;
	uint8_t states[64]; /* of all pages, in order */
};

static bool overlaps(const struct heap_image *image, uint64_t start, uint64_t size)
{
	size_t i;

	for (i = 0; i < image->count; i++)
		if (start < image->regions[i].start + image->regions[i].size &&
		    image->regions[i].start < start + size)
			return true;
	return false;
}

/* What the input has of a region is taken; the rest is zeros. The second region is libc's data. */
static void fill(struct heap_image *image, const struct input_head *head, const uint8_t *bytes,
		 size_t left)
{
	size_t i, k, page = 0;

	for (i = 0; i < MIN(head->count, IMAGE_REGIONS); i++) {
		uint64_t start = head->regions[i].start & ~(VIEW_PAGE - 1) & ((1ULL << 47) - 1);
		uint64_t pages = CLAMP(head->regions[i].pages, PAGES_LEAST, PAGES_MOST), part;
		struct image_region *region;

		if (overlaps(image, start, pages * VIEW_PAGE))
			continue;
		image_add_region(image, start, pages * VIEW_PAGE);
		region = &image->regions[image->count - 1];
		part = MIN(left, region->size);
		memcpy(region->bytes, bytes, part);
		bytes += part;
		left -= part;
		for (k = 0; k < pages; k++, page++)
			region->states[k] =
				(head->states[page % sizeof(head->states)] + PAGE_RESIDENT) % 3;
	}
}

/* Every byte of a heap is of one kind, and no more comes back than is free. */
static void check(const struct heap_walk *walk, const struct heap_sum *sum)
{
	uint64_t all = 0, found = 0;
	guint i;

	for (i = 0; i < walk->chunks->len; i++) {
		const struct malloc_heap *heap =
			g_array_index(walk->chunks, struct heap_chunks, i).heap;

		all += heap->end - heap->start;
	}
	found = arena_free(&sum->all).bytes + sum->all.bytes[CHUNK_LIVE].bytes +
		sum->all.overhead.bytes + sum->all.unread.bytes + sum->all.hidden.bytes;
	if (found != all || sum->all.trim.bytes > arena_free(&sum->all).bytes)
		abort();
	for (i = 1; i < walk->kept->len; i++)
		if (g_array_index(walk->kept, struct kept_chunk, i).address <=
		    g_array_index(walk->kept, struct kept_chunk, i - 1).address)
			abort();
}

/* The same memory as another allocator's, the third region its code. */
static void count(struct heap_image *image)
{
	const struct mapping *data[] = { maps_find(&image->maps, image->regions[1].start) };
	struct allocator_module module = { .inode = 7 };
	const struct counters_place place = { &image->view, &image->maps, &module, data, 1 };
	struct allocator_counters counters;
	size_t i;

	for (i = 0; i < image->count; i++)
		if (image->count > 2 && image->mappings[i].start == image->regions[2].start) {
			image->mappings[i].exec = true;
			image->mappings[i].inode = 7;
		}
	for (i = ALLOCATOR_UNKNOWN; i <= ALLOCATOR_GO; i++) {
		module.kind = (enum allocator_kind)i;
		allocator_counters_read(&place, &counters);
		if (counters.known && module.kind != ALLOCATOR_JEMALLOC &&
		    module.kind != ALLOCATOR_TCMALLOC && module.kind != ALLOCATOR_MIMALLOC)
			abort();
	}
}

static void look(struct heap_image *image, const struct input_head *head)
{
	const struct mapping *data[] = { maps_find(&image->maps, image->regions[1].start) };
	struct mapped_chunks mapped;
	struct malloc_heaps heaps;
	struct heap_walk walk;
	struct heap_sum sum;

	if (!malloc_heaps_find(&image->view, &image->maps, data, 1, head->par,
			       (unsigned int)(head->version % 300), &heaps)) {
		heap_walk_init(&walk, &image->view, &heaps, false);
		heap_walk_run(&walk);
		heap_sum_make(&walk, &sum);
		check(&walk, &sum);
		mapped_chunks_find(&image->view, &image->maps, &heaps, heaps.numbers.mmaps,
				   &mapped);
		mapped_chunks_free(&mapped);
		heap_sum_free(&sum);
		heap_walk_free(&walk);
	}
	malloc_heaps_free(&heaps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct heap_image image = { 0 };
	struct input_head head;

	if (size < sizeof(head))
		return 0;
	memcpy(&head, data, sizeof(head));
	fill(&image, &head, data + sizeof(head), size - sizeof(head));
	image_finish(&image);
	if (image.count > 1) {
		look(&image, &head);
		count(&image);
	}
	image_free(&image);
	return 0;
}

/* The head; the arena; and where chunks begin. */
size_t fuzz_regions(const uint8_t *data, size_t size, struct fuzz_region *regions)
{
	const struct input_head *head = (const void *)data;
	size_t at = sizeof(*head), count = 0, i;

	regions[count++] = (struct fuzz_region){ 0, sizeof(*head) };
	for (i = 0; i < head->count && i < IMAGE_REGIONS; i++) {
		uint64_t bytes = head->regions[i].pages * VIEW_PAGE;

		if (bytes > size - at)
			break;
		regions[count++] = (struct fuzz_region){ at, MIN(bytes, VIEW_PAGE) };
		at += bytes;
	}
	return count;
}
