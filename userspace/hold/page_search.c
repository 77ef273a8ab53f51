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

/* From `at` on, a mapping; what is found may reach to `end`. Behind what was looked at. */
static uint64_t look_through(struct searching *searching, struct block_reader *reader, uint64_t at,
			     uint64_t mapping_end, uint64_t end)
{
	const struct page_search *search = searching->search;
	struct page_found found;
	uint64_t behind;

	while (at < mapping_end && g_hash_table_size(searching->taken) < FOUND_MAX) {
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
	return at;
}

/* Mappings without a gap: madvise makes several of one, in the midst of what lies in it. */
static void look_at(struct searching *searching, const struct mapping *mappings, size_t number)
{
	const struct memory_view *view = searching->search->view;
	uint64_t at = mappings[0].start, end = mappings[number - 1].end;
	uint64_t count = (end - at) / VIEW_PAGE;
	struct page_range pages = { at, count, NULL };
	struct block_reader reader;
	size_t i;

	if (count > PAGES_MAX - searching->pages) {
		for (i = 0; i < number && number > 1; i++)
			look_at(searching, &mappings[i], 1);
		return;
	}
	searching->pages += count;
	pages.states = g_malloc0(count);
	if (view->pages(view->context, pages.first, count, pages.states)) {
		block_reader_open(&reader, view, &pages, false);
		for (i = 0; i < number; i++)
			at = look_through(searching, &reader, MAX(at, mappings[i].start),
					  mappings[i].end, end);
		block_reader_close(&reader);
	}
	g_free(pages.states);
}

void page_search_run(const struct page_search *search)
{
	struct searching searching = { .search = search };
	const struct mapping *mappings = search->maps->entries;
	size_t i, number, pass;

	searching.taken = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	for (pass = 0; pass < 2 && !has_all(&searching); pass++) {
		searching.by_page = pass;
		searching.pages = 0;
		for (i = 0; i < search->maps->count && !has_all(&searching); i += number) {
			number = 1;
			if (!is_candidate(&mappings[i]))
				continue;
			while (i + number < search->maps->count &&
			       is_candidate(&mappings[i + number]) &&
			       mappings[i + number].start == mappings[i + number - 1].end)
				number++;
			look_at(&searching, &mappings[i], number);
		}
	}
	g_hash_table_destroy(searching.taken);
}
