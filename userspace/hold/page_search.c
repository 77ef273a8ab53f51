// SPDX-License-Identifier: GPL-2.0
#include "hold/page_search.h"

#include <glib.h>

#define PAGES_MAX (64U << 20) /* of all mappings that are looked at: 256 GiB */
#define SEARCH_MAX (1U << 20) /* pages that begin with nothing */
#define FOUND_MAX (1U << 17)

struct searching {
	const struct page_search *search;
	GHashTable *taken; /* addresses of what was taken, and its size */
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

/* Size of what was taken there before; 0: nothing was. */
static uint64_t taken_at(const struct searching *searching, uint64_t address)
{
	const uint64_t *size = g_hash_table_lookup(searching->taken, &address);

	return size ? *size : 0;
}

static void take(struct searching *searching, const struct page_range *pages, uint64_t address,
		 uint64_t size)
{
	g_hash_table_insert(searching->taken, g_memdup2(&address, sizeof(address)),
			    g_memdup2(&size, sizeof(size)));
	searching->search->take(searching->search->context, pages, address, size);
}

/* What need not be looked at: a heap, or what was taken in the first pass. */
static uint64_t known_end(const struct searching *searching, uint64_t address)
{
	uint64_t behind = behind_heap(searching->search, address);

	return behind ? behind : address + taken_at(searching, address);
}

/* Whether a page that begins with nothing is not the last one to look at. */
static bool goes_on(struct searching *searching)
{
	return searching->by_page && !has_all(searching) && ++searching->searched <= SEARCH_MAX;
}

static void look_through(struct searching *searching, struct block_reader *reader, uint64_t start,
			 uint64_t end)
{
	const struct page_search *search = searching->search;
	uint64_t at = start, behind;
	struct page_found found;

	while (at < end && g_hash_table_size(searching->taken) < FOUND_MAX) {
		behind = known_end(searching, at);
		if (behind > at) {
			at = behind;
			continue;
		}
		found = (struct page_found){ VIEW_PAGE, false };
		if (block_reader_has(reader, at))
			found = search->look(search->context, reader, at, end);
		if (found.is_it)
			take(searching, reader->pages, at, found.size);
		else if (!goes_on(searching))
			break;
		at += found.size;
	}
}

static void look_at(struct searching *searching, const struct mapping *mapping)
{
	const struct memory_view *view = searching->search->view;
	uint64_t count = (mapping->end - mapping->start) / VIEW_PAGE;
	struct page_range pages = { mapping->start, count, NULL };
	struct block_reader reader;

	if (count > PAGES_MAX - searching->pages)
		return;
	searching->pages += count;
	pages.states = g_malloc0(count);
	if (view->pages(view->context, pages.first, count, pages.states)) {
		block_reader_open(&reader, view, &pages, false);
		look_through(searching, &reader, mapping->start, mapping->end);
		block_reader_close(&reader);
	}
	g_free(pages.states);
}

void page_search_run(const struct page_search *search)
{
	struct searching searching = { .search = search };
	size_t i, pass;

	searching.taken = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	for (pass = 0; pass < 2 && !has_all(&searching); pass++) {
		searching.by_page = pass;
		searching.pages = 0;
		for (i = 0; i < search->maps->count && !has_all(&searching); i++)
			if (is_candidate(&search->maps->entries[i]))
				look_at(&searching, &search->maps->entries[i]);
	}
	g_hash_table_destroy(searching.taken);
}
