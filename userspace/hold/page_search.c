// SPDX-License-Identifier: GPL-2.0
#include "hold/page_search.h"

#include <glib.h>

#define PAGES_MAX (64U << 20) /* of all mappings that are looked at: 256 GiB */
#define SEARCH_MAX (1U << 20) /* pages that begin with nothing */

struct searching {
	const struct page_search *search;
	GHashTable *seen;  /* addresses of what was taken */
	uint64_t pages;	   /* whose state was read */
	uint64_t searched; /* pages that begin with nothing */
	bool by_page;
};

static bool is_candidate(const struct mapping *mapping)
{
	return mapping->write && mapping->read && !mapping->shared && !mapping->inode &&
	       (!*mapping->path || g_str_has_prefix(mapping->path, "[anon"));
}

static bool has_all(const struct searching *searching)
{
	return searching->search->has_all(searching->search->context);
}

/* Behind the heap that holds address; 0: none does. */
static uint64_t behind_heap(const struct page_search *search, uint64_t address)
{
	ssize_t heap = malloc_heaps_at(search->heaps, address);
	uint64_t end;

	if (heap < 0)
		return 0;
	end = g_array_index(search->heaps->heaps, struct malloc_heap, heap).end;
	return (end + VIEW_PAGE - 1) & ~(VIEW_PAGE - 1);
}

static void look_at(struct searching *searching, const struct mapping *mapping)
{
	const struct page_search *search = searching->search;
	uint64_t count = (mapping->end - mapping->start) / VIEW_PAGE, at = mapping->start, size;
	struct page_range pages = { mapping->start, count, NULL };
	struct block_reader reader;

	if (count > PAGES_MAX - searching->pages)
		return;
	searching->pages += count;
	pages.states = g_malloc0(count);
	if (!search->view->pages(search->view->context, pages.first, count, pages.states))
		pages.count = 0;
	block_reader_open(&reader, search->view, &pages, false);
	while (at < mapping->end && pages.count) {
		uint64_t behind = behind_heap(search, at);

		if (behind) {
			at = behind;
			continue;
		}
		size = block_reader_has(&reader, at) ?
			       search->size_at(search->context, &reader, at, mapping->end) :
			       0;
		if (size) {
			if (g_hash_table_add(searching->seen, g_memdup2(&at, sizeof(at))))
				search->take(search->context, &pages, at, size);
		} else if (!searching->by_page || has_all(searching) ||
			   ++searching->searched > SEARCH_MAX) {
			break;
		} else {
			size = VIEW_PAGE;
		}
		at += size;
	}
	block_reader_close(&reader);
	g_free(pages.states);
}

void page_search_run(const struct page_search *search)
{
	struct searching searching = { .search = search };
	size_t i, pass;

	searching.seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	for (pass = 0; pass < 2 && !has_all(&searching); pass++) {
		searching.by_page = pass;
		searching.pages = 0;
		for (i = 0; i < search->maps->count && !has_all(&searching); i++)
			if (is_candidate(&search->maps->entries[i]))
				look_at(&searching, &search->maps->entries[i]);
	}
	g_hash_table_destroy(searching.seen);
}
