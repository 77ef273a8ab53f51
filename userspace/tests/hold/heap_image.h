/* SPDX-License-Identifier: GPL-2.0 */
/*
 * heap_image.h: the memory of a process that uses glibc's allocator, made by hand: libc's data with
 * main_arena and mp_, a heap by sbrk(2), and heaps of other arenas. For tests and fuzzers.
 */
#ifndef MEMTOLL_HEAP_IMAGE_H
#define MEMTOLL_HEAP_IMAGE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hold/malloc_state.h"
#include "hold/memory_view.h"

#define IMAGE_DATA 0x7f1200000000ULL
#define IMAGE_DATA_SIZE 0x3000U
#define IMAGE_ARENA (IMAGE_DATA + 0x100)
#define IMAGE_PAR (IMAGE_DATA + 0x2000)
#define IMAGE_HEAP 0x555500000000ULL
#define IMAGE_OTHER 0x7f0000000000ULL /* a multiple of HEAP_BYTES */
#define IMAGE_REGIONS 6

struct image_region {
	uint64_t start;
	uint64_t size; /* whole pages */
	uint8_t *bytes;
	uint8_t *states;
};

struct heap_image {
	struct image_region regions[IMAGE_REGIONS];
	size_t count;
	uint64_t head; /* from main_arena's start to its bins */
	bool mangled;
	bool previous_in_use;  /* while chunks are added */
	uint64_t absent_reads; /* of pages that are not resident: must not be */
	struct mapping mappings[IMAGE_REGIONS];
	struct maps maps;
	struct memory_view view;
	/* What changes when its heaps have been found, and before they are walked. */
	void (*between)(struct heap_image *image);
};

static inline struct image_region *image_region(struct heap_image *image, uint64_t address)
{
	size_t i;

	for (i = 0; i < image->count; i++)
		if (address >= image->regions[i].start &&
		    address - image->regions[i].start < image->regions[i].size)
			return &image->regions[i];
	return NULL;
}

static inline bool image_read(void *context, uint64_t address, void *to, size_t size)
{
	struct heap_image *image = context;
	const struct image_region *region = image_region(image, address);
	uint64_t offset, page;

	if (!region || size > region->size - (address - region->start))
		return false;
	offset = address - region->start;
	for (page = offset / VIEW_PAGE; size && page <= (offset + size - 1) / VIEW_PAGE; page++)
		image->absent_reads += region->states[page] != PAGE_RESIDENT;
	memcpy(to, region->bytes + offset, size);
	return true;
}

static inline bool image_pages(void *context, uint64_t address, size_t count, uint8_t *states)
{
	struct heap_image *image = context;
	size_t i;

	for (i = 0; i < count; i++) {
		uint64_t at = address + i * VIEW_PAGE;
		const struct image_region *region = image_region(image, at);

		states[i] = region ? region->states[(at - region->start) / VIEW_PAGE] : PAGE_ABSENT;
	}
	return true;
}

static inline void image_add_region(struct heap_image *image, uint64_t start, uint64_t size)
{
	struct image_region *region = &image->regions[image->count];
	struct mapping *mapping = &image->mappings[image->count++];

	*region = (struct image_region){ start, size, g_malloc0(size), g_malloc(size / VIEW_PAGE) };
	memset(region->states, PAGE_RESIDENT, size / VIEW_PAGE);
	*mapping = (struct mapping){
		.start = start, .end = start + size, .read = true, .write = true, .path = ""
	};
	image->maps.count = image->count;
}

static inline gint image_by_start(gconstpointer a, gconstpointer b)
{
	const struct mapping *left = a, *right = b;

	return left->start < right->start ? -1 : left->start > right->start;
}

/* All regions are there. */
static inline void image_finish(struct heap_image *image)
{
	qsort(image->mappings, image->count, sizeof(*image->mappings), image_by_start);
	image->maps.entries = image->mappings;
	image->view =
		(struct memory_view){ .read = image_read, .pages = image_pages, .context = image };
}

static inline void put_word(struct heap_image *image, uint64_t address, uint64_t value)
{
	struct image_region *region = image_region(image, address);

	memcpy(region->bytes + (address - region->start), &value, sizeof(value));
}

static inline uint64_t get_word(struct heap_image *image, uint64_t address)
{
	const struct image_region *region = image_region(image, address);
	uint64_t value;

	memcpy(&value, region->bytes + (address - region->start), sizeof(value));
	return value;
}

/* A malloc_state at address: all bins empty, the last of the ring of which next is the next. */
static inline void put_arena(struct heap_image *image, uint64_t address, uint64_t top,
			     uint64_t next, uint64_t system_bytes)
{
	uint64_t bins = address + image->head;
	unsigned int i;

	put_word(image, bins - 16, top);
	for (i = 0; i < BIN_WORDS / 2; i++) {
		put_word(image, bins + 16 * i, bins + 16 * i - 16);
		put_word(image, bins + 16 * i + 8, bins + 16 * i - 16);
	}
	put_word(image, bins + BIN_WORDS * 8 + 16, next);
	put_word(image, bins + BIN_WORDS * 8 + 32, 1);
	put_word(image, bins + BIN_WORDS * 8 + 40, system_bytes);
	put_word(image, bins + BIN_WORDS * 8 + 48, system_bytes);
}

/* mp_ of glibc 2.36. */
static inline void put_par(struct heap_image *image)
{
	put_word(image, IMAGE_PAR, 128 << 10);
	put_word(image, IMAGE_PAR + 8, 128 << 10);
	put_word(image, IMAGE_PAR + 16, 128 << 10);
	put_word(image, IMAGE_PAR + 64, 65536);	     /* n_mmaps_max */
	put_word(image, IMAGE_PAR + 96, IMAGE_HEAP); /* sbrk_base */
	put_word(image, IMAGE_PAR + 120, 7);	     /* tcache_count */
}

static inline void image_init(struct heap_image *image, uint64_t head, bool mangled,
			      uint64_t heap_size)
{
	*image = (struct heap_image){ .head = head, .mangled = mangled, .previous_in_use = true };
	image_add_region(image, IMAGE_HEAP, heap_size);
	image_add_region(image, IMAGE_DATA, IMAGE_DATA_SIZE);
	put_par(image);
	put_arena(image, IMAGE_ARENA, 0, IMAGE_ARENA, heap_size);
	image_finish(image);
}

static inline void image_free(struct heap_image *image)
{
	size_t i;

	for (i = 0; i < image->count; i++) {
		g_free(image->regions[i].bytes);
		g_free(image->regions[i].states);
	}
}

/* A chunk: where the next one begins. */
static inline uint64_t put_chunk(struct heap_image *image, uint64_t at, uint64_t size, bool in_use)
{
	put_word(image, at + 8, size | image->previous_in_use);
	if (!in_use)
		put_word(image, at + size, size); /* prev_size */
	image->previous_in_use = in_use;
	return at + size;
}

/* The last chunk, of the arena at this address; end: of the heap. */
static inline void put_top(struct heap_image *image, uint64_t arena, uint64_t at, uint64_t end)
{
	put_word(image, at + 8, (end - at) | image->previous_in_use);
	put_word(image, arena + image->head - 16, at);
	image->previous_in_use = true;
}

static inline uint64_t image_link(const struct heap_image *image, uint64_t chunk, uint64_t link)
{
	return image->mangled ? link ^ (chunk + 16) >> 12 : link;
}

/* A list of chunks, as fast ones have them: its first one is returned. */
static inline uint64_t put_fast_list(struct heap_image *image, const uint64_t *chunks, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		put_word(image, chunks[i] + 16,
			 image_link(image, chunks[i], i + 1 < count ? chunks[i + 1] : 0));
	return count ? chunks[0] : 0;
}

/* The same as a cache has them, by the addresses of their memory. */
static inline uint64_t put_cache_list(struct heap_image *image, const uint64_t *chunks,
				      size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		put_word(image, chunks[i] + 16,
			 image_link(image, chunks[i], i + 1 < count ? chunks[i + 1] + 16 : 0));
	return count ? chunks[0] + 16 : 0;
}

#endif /* MEMTOLL_HEAP_IMAGE_H */
