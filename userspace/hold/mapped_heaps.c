// SPDX-License-Identifier: GPL-2.0
#include "hold/mapped_heaps.h"

#include <glib.h>

#include "hold/chunk_header.h"
#include "hold/mapped_chunks.h"
#include "hold/page_search.h"

#define AGREE_LEAST 32 /* chunks in a row that are no chance */
/* Headers that led to nothing; a block read costs as much as many of them. May be made on purpose. */
#define WASTE_MAX (8U << 20)
#define BLOCK_WASTE 256

struct search {
	const struct memory_view *view;
	const struct malloc_arena *arena;
	GArray *heaps; /* of struct malloc_heap: not among those found while these are passed over */
	uint64_t wanted;
	uint64_t bytes;	  /* so far */
	uint64_t top_end; /* 0: not known */
	uint64_t waste;
	bool is_heap; /* what was looked at last */
};

static uint64_t size_of(const uint64_t *words)
{
	return words[1] & ~CHUNK_FLAGS;
}

/*
 * Where the arena's top ends: it begins elsewhere whenever the program takes from it, and ends where
 * its mapping does.
 */
static uint64_t find_top_end(const struct search *search)
{
	uint64_t top, size;

	return malloc_top_read(search->view, search->arena, VIEW_PAGE, UINT64_MAX, &top, &size) ?
		       top + size :
		       0;
}

/* The first chunk of a mapping has none before it, whose size could be there. */
static bool begins(const uint64_t *words)
{
	return words && !words[0] && (words[1] & CHUNK_FLAGS) == CHUNK_PREVIOUS_IN_USE &&
	       size_of(words);
}

static bool is_chunk(const uint64_t *words, uint64_t left)
{
	return words && size_of(words) >= CHUNK_FENCE && size_of(words) % 16 == 0 &&
	       size_of(words) <= left && !(words[1] & CHUNK_FLAGS & ~CHUNK_PREVIOUS_IN_USE);
}

/*
 * The chunks that begin at start, as far as they end with a page behind the top or behind two
 * fenceposts. Where they do not, but are many, none of them need be tried as the first one.
 */
static struct page_found chunks_at(struct search *search, struct block_reader *reader,
				   uint64_t start, uint64_t most)
{
	uint64_t at = start, steps = 0, blocks = reader->blocks;
	struct page_found found = { VIEW_PAGE, false };
	unsigned int fences = 0;

	if (search->waste >= WASTE_MAX || !begins(block_reader_get(reader, start, CHUNK_HEADER)))
		return found;
	while (most - at >= CHUNK_HEADER) {
		const uint64_t *words = block_reader_get(reader, at, CHUNK_HEADER);

		if (!is_chunk(words, most - at))
			break;
		steps++;
		fences = size_of(words) == CHUNK_FENCE ? fences + 1 : 0;
		at += size_of(words);
		if ((fences == 2 || at == search->top_end) && at % VIEW_PAGE == 0)
			return (struct page_found){ at - start, true };
	}
	search->waste += steps + BLOCK_WASTE * (reader->blocks - blocks);
	if (steps >= AGREE_LEAST)
		found.size = MAX(VIEW_PAGE, (at & ~(VIEW_PAGE - 1)) - start);
	return found;
}

static struct page_found look(void *context, struct block_reader *reader, uint64_t address,
			      uint64_t end)
{
	struct search *search = context;
	uint64_t size = mapped_chunk_size(reader, address, end);

	search->is_heap = !size;
	return size ? (struct page_found){ size, true } : chunks_at(search, reader, address, end);
}

/* Those side by side are walked as one, as the kernel has them; the top ends a walk. */
static void take(void *context, const struct page_range *pages, uint64_t start, uint64_t size)
{
	struct search *search = context;
	struct malloc_heap heap = {
		.start = start,
		.first = start,
		.end = start + size,
		.limit = start + size,
		.mapped = UINT64_MAX, /* it ends at no break */
		.main = true,
		.searched = true,
	};
	struct malloc_heap *last = NULL;

	(void)pages;
	if (!search->is_heap)
		return;
	search->bytes += size;
	if (search->heaps->len)
		last = &g_array_index(search->heaps, struct malloc_heap, search->heaps->len - 1);
	if (last && last->end == start && last->end != search->top_end &&
	    heap.end != search->top_end)
		last->end = last->limit = heap.end;
	else
		g_array_append_val(search->heaps, heap);
}

static bool has_all(const void *context)
{
	const struct search *search = context;

	return search->bytes >= search->wanted;
}

uint64_t mapped_heaps_add(const struct memory_view *view, const struct maps *maps, uint64_t wanted,
			  struct malloc_heaps *found)
{
	struct search search = { .view = view, .wanted = wanted };
	const struct page_search pages = {
		.view = view,
		.maps = maps,
		.heaps = found,
		.look = look,
		.take = take,
		.has_all = has_all,
		.context = &search,
	};
	uint64_t bytes = 0;
	guint i;

	search.arena = (const void *)found->arenas->data;
	search.heaps = g_array_new(FALSE, FALSE, sizeof(struct malloc_heap));
	search.top_end = find_top_end(&search);
	page_search_run(&pages);
	for (i = 0; i < search.heaps->len; i++) {
		struct malloc_heap *heap = &g_array_index(search.heaps, struct malloc_heap, i);

		malloc_heap_refresh(view, found, heap, heap->limit);
		malloc_heaps_take(found, heap);
		bytes += heap->end - heap->start;
	}
	g_array_unref(search.heaps);
	return wanted - MIN(bytes, wanted);
}
