// SPDX-License-Identifier: GPL-2.0
#include "hold/cached_chunks.h"

#include <string.h>

#include "hold/chunk_header.h"

#define SMALL_BINS 64
#define BINS_MAX 76
#define STRANGE_MOST 2 /* bins of a cache that change while it is read */

/* struct tcache_perthread_struct: 2.26, 2.30 and 2.42. */
struct cache_layout {
	uint64_t size; /* of its chunk */
	unsigned int bins;
	unsigned int count_bytes;
	bool slots; /* how many more fit, instead of how many there are */
};

static const struct cache_layout layouts[] = {
	{ 0x250, SMALL_BINS, 1, false },
	{ 0x290, SMALL_BINS, 2, false },
	{ 0x300, BINS_MAX, 2, true },
};

struct cache_bin {
	uint64_t count;
	uint64_t first; /* address of the first one's memory */
};

static const struct cache_layout *layout_of(const struct cache_chunk *cache)
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(layouts); i++)
		if (layouts[i].size == cache->size)
			return &layouts[i];
	return NULL;
}

/* False: no cache, by a count. */
static bool read_bin(const struct cache_chunk *cache, const struct cache_layout *layout,
		     uint64_t most, unsigned int i, struct cache_bin *bin)
{
	const uint8_t *bytes = (const uint8_t *)cache->words;
	uint16_t count = bytes[i];

	if (layout->count_bytes == 2)
		memcpy(&count, bytes + 2 * i, sizeof(count));
	if (layout->slots && count > most)
		return false;
	bin->count = layout->slots ? most - count : count;
	memcpy(&bin->first, bytes + (size_t)layout->bins * layout->count_bytes + 8 * (size_t)i,
	       sizeof(bin->first));
	return true;
}

static bool fits_bin(const struct kept_chunk *kept, unsigned int bin)
{
	if (!kept || kept->kind != CHUNK_LIVE)
		return false;
	return bin < SMALL_BINS ? kept->size == SMALL_LEAST + 16ULL * bin :
				  kept->size > SMALL_LEAST + 16ULL * (SMALL_BINS - 1);
}

/* What can be seen of it alone: nothing in empty bins, and addresses of heaps in the others. */
static bool read_bins(const struct malloc_heaps *heaps, const struct cache_chunk *cache,
		      const struct cache_layout *layout, struct cache_bin *bins)
{
	unsigned int used = 0, strange = 0, wrong = 0, i;

	for (i = 0; i < layout->bins; i++) {
		if (!read_bin(cache, layout, heaps->numbers.tcache_count, i, &bins[i]))
			return false;
		if (!bins[i].count != !bins[i].first)
			strange++;
		if (!bins[i].count || !bins[i].first)
			continue;
		used++;
		wrong += bins[i].first % 16 || malloc_heaps_at(heaps, bins[i].first) < 0;
	}
	return used && strange <= STRANGE_MOST && wrong * 4 <= used;
}

bool cached_chunks_may_be(const struct malloc_heaps *heaps, const struct cache_chunk *cache)
{
	const struct cache_layout *layout = layout_of(cache);
	struct cache_bin bins[BINS_MAX];

	return layout && read_bins(heaps, cache, layout, bins);
}

static bool is_cache(const struct heap_walk *walk, const struct cache_chunk *cache,
		     const struct cache_layout *layout, struct cache_bin *bins)
{
	unsigned int used = 0, wrong = 0, i;

	if (!read_bins(walk->heaps, cache, layout, bins))
		return false;
	for (i = 0; i < layout->bins; i++) {
		if (!bins[i].count || !bins[i].first)
			continue;
		used++;
		wrong += !fits_bin(heap_walk_find(walk, bins[i].first - CHUNK_HEADER), i);
	}
	return wrong * 4 <= used;
}

static uint64_t link_of(const struct heap_walk *walk, const struct kept_chunk *kept)
{
	return walk->heaps->mangled ? kept->link ^ (kept->address + CHUNK_HEADER) >> 12 :
				      kept->link;
}

static void change_kind(struct heap_walk *walk, struct kept_chunk *kept, enum chunk_kind kind)
{
	ssize_t heap = malloc_heaps_at(walk->heaps, kept->address);
	struct heap_chunks *chunks;
	struct page_bytes bytes = { 0 }, *from;

	if (heap < 0)
		return;
	chunks = &g_array_index(walk->chunks, struct heap_chunks, heap);
	page_bytes_add(&bytes, &chunks->pages, kept->address, kept->address + kept->size);
	from = &chunks->bytes[kept->kind];
	from->bytes -= bytes.bytes;
	from->resident -= bytes.resident;
	from->swapped -= bytes.swapped;
	chunks->counts[kept->kind]--;
	page_bytes_join(&chunks->bytes[kind], &bytes);
	chunks->counts[kind]++;
	kept->kind = kind;
}

/* A list that ends where no chunk of its size is known. */
static void note_end(const struct heap_walk *walk, const struct kept_chunk *kept, uint64_t at,
		     struct cached_chunks *found)
{
	if (!kept && walk->left_out && at % 16 == 0 && malloc_heaps_at(walk->heaps, at) >= 0)
		found->cut++;
	else
		found->torn++;
}

/* So many are there, and then none; else it is noted. */
static void take_bin(struct heap_walk *walk, const struct cache_bin *bin, unsigned int number,
		     struct cached_chunks *found)
{
	uint64_t at = bin->first, left;

	for (left = bin->count; left && at; left--) {
		struct kept_chunk *kept = heap_walk_find(walk, at - CHUNK_HEADER);

		if (!fits_bin(kept, number)) {
			note_end(walk, kept, at - CHUNK_HEADER, found);
			return;
		}
		at = link_of(walk, kept);
		change_kind(walk, kept, CHUNK_CACHED);
	}
	found->torn += left || at;
}

static void take_caches(struct heap_walk *walk, struct cached_chunks *found)
{
	struct cache_bin bins[BINS_MAX];
	unsigned int k;
	guint i;

	for (i = 0; i < walk->caches->len; i++) {
		const struct cache_chunk *cache =
			&g_array_index(walk->caches, struct cache_chunk, i);
		const struct cache_layout *layout = layout_of(cache);

		if (!layout || !is_cache(walk, cache, layout, bins))
			continue;
		found->caches++;
		for (k = 0; k < layout->bins; k++)
			take_bin(walk, &bins[k], k, found);
	}
}

/* Entries that a list visits are of another kind afterwards: no list is followed round. */
static void take_fast(struct heap_walk *walk, struct cached_chunks *found)
{
	guint i, k;

	for (i = 0; i < walk->heaps->arenas->len; i++) {
		const struct malloc_arena *arena =
			&g_array_index(walk->heaps->arenas, struct malloc_arena, i);

		for (k = 0; k < FAST_BINS; k++) {
			uint64_t at = arena->fast[k];
			struct kept_chunk *kept;

			for (; at; at = link_of(walk, kept)) {
				kept = heap_walk_find(walk, at);
				if (!fits_bin(kept, k)) {
					note_end(walk, kept, at, found);
					break;
				}
				change_kind(walk, kept, CHUNK_FAST);
			}
		}
	}
}

/* The first pair of bins; it is linked by plain addresses of chunks. */
static void take_unsorted(struct heap_walk *walk)
{
	guint i;

	for (i = 0; i < walk->heaps->arenas->len; i++) {
		uint64_t at = g_array_index(walk->heaps->arenas, struct malloc_arena, i).bins[0];
		struct kept_chunk *kept;

		while ((kept = heap_walk_find(walk, at)) &&
		       (kept->kind == CHUNK_SMALL || kept->kind == CHUNK_LARGE)) {
			at = kept->link;
			change_kind(walk, kept, CHUNK_UNSORTED);
		}
	}
}

void cached_chunks_resolve(struct heap_walk *walk, struct cached_chunks *found)
{
	*found = (struct cached_chunks){ 0 };
	take_fast(walk, found);
	take_caches(walk, found);
	take_unsorted(walk);
}
