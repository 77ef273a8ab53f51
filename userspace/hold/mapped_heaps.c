// SPDX-License-Identifier: GPL-2.0
#include "hold/mapped_heaps.h"

#include <glib.h>

#include "hold/mapped_chunks.h"
#include "hold/page_search.h"

#define FLAGS 7U
#define PREVIOUS_IN_USE 1U
#define FENCE 16
#define STEPS_MAX (64ULL << 20) /* headers: what looks like chunks may be made on purpose */

struct search {
	const struct memory_view *view;
	struct malloc_heaps *found;
	GArray *heaps; /* of struct malloc_heap: not among those found while these are passed over */
	uint64_t wanted;
	uint64_t bytes; /* so far */
	uint64_t steps;
	bool is_heap; /* what was looked at last */
};

/* Where the arena's top begins now: the program goes on meanwhile. */
static uint64_t top_now(const struct search *search)
{
	const struct malloc_arena *main = (const void *)search->found->arenas->data;
	uint64_t top;

	return search->view->read(search->view->context, main->top_at, &top, sizeof(top)) ? top : 0;
}

static uint64_t size_of(const uint64_t *words)
{
	return words[1] & ~(uint64_t)FLAGS;
}

/* The first of a mapping has none before it, whose size could be there. */
static bool begins(const uint64_t *words)
{
	return words && !words[0] && (words[1] & FLAGS) == PREVIOUS_IN_USE && size_of(words);
}

/*
 * Where the chunks end that begin at start: behind the top or behind two fenceposts, with a page. 0:
 * they fit nothing.
 */
static uint64_t chunks_end(struct search *search, struct block_reader *reader, uint64_t start,
			   uint64_t most)
{
	uint64_t at = start, top, size;
	unsigned int fences = 0;

	if (!begins(block_reader_get(reader, start, FENCE)))
		return 0;
	top = top_now(search);
	while (most - at >= FENCE && search->steps++ < STEPS_MAX) {
		const uint64_t *words = block_reader_get(reader, at, FENCE);

		size = words ? size_of(words) : 0;
		if (size < FENCE || size % 16 || size > most - at ||
		    words[1] & FLAGS & ~PREVIOUS_IN_USE)
			return 0;
		fences = size == FENCE ? fences + 1 : 0;
		at += size;
		if (fences == 2 || at - size == top)
			return at % VIEW_PAGE ? 0 : at;
	}
	return 0;
}

static uint64_t size_at(void *context, struct block_reader *reader, uint64_t address, uint64_t end)
{
	struct search *search = context;
	uint64_t size = mapped_chunk_size(reader, address, end), heap_end;

	search->is_heap = !size;
	if (size)
		return size;
	heap_end = chunks_end(search, reader, address, end);
	return heap_end ? heap_end - address : 0;
}

static bool has_top(const struct search *search, uint64_t start, uint64_t end)
{
	uint64_t top = top_now(search);

	return top >= start && top < end;
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
	};
	struct malloc_heap *last = NULL;

	(void)pages;
	if (!search->is_heap)
		return;
	search->bytes += size;
	if (search->heaps->len)
		last = &g_array_index(search->heaps, struct malloc_heap, search->heaps->len - 1);
	if (last && last->end == start && !has_top(search, last->start, heap.end))
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
	struct search search = { .view = view, .found = found, .wanted = wanted };
	const struct page_search pages = {
		.view = view,
		.maps = maps,
		.heaps = found,
		.size_at = size_at,
		.take = take,
		.has_all = has_all,
		.context = &search,
	};
	guint i;

	search.heaps = g_array_new(FALSE, FALSE, sizeof(struct malloc_heap));
	page_search_run(&pages);
	for (i = 0; i < search.heaps->len; i++) {
		struct malloc_heap *heap = &g_array_index(search.heaps, struct malloc_heap, i);

		malloc_heap_refresh(view, found, heap, heap->limit);
		malloc_heaps_take(found, heap);
	}
	g_array_unref(search.heaps);
	return wanted - MIN(search.bytes, wanted);
}
