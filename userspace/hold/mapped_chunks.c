// SPDX-License-Identifier: GPL-2.0
#include "hold/mapped_chunks.h"

#include <string.h>

#include "hold/block_reader.h"

#define FLAGS 7U
#define IS_MMAPPED 2U
#define MMAP_HUGE 1U	      /* in the word before the size; from 2.43 on */
#define PAGES_MAX (64U << 20) /* of all mappings that are looked at: 256 GiB */
#define SEARCH_MAX (1U << 20) /* pages that are read to find headers */
#define CHUNKS_MAX (1U << 17) /* of one process; vm.max_map_count is 65,530 */

struct search {
	const struct memory_view *view;
	const struct malloc_heaps *heaps;
	struct mapped_chunks *found;
	GHashTable *seen; /* starts of chunks */
	int64_t wanted;
	uint64_t pages;	   /* whose state was read */
	uint64_t searched; /* pages without a header */
	bool by_page;	   /* look at every page, not only behind chunks */
};

static bool is_candidate(const struct mapping *mapping)
{
	return mapping->write && mapping->read && !mapping->shared && !mapping->inode &&
	       (!*mapping->path || g_str_has_prefix(mapping->path, "[anon"));
}

/* Size of the chunk that begins at address; 0: none does. */
static uint64_t size_at(struct block_reader *reader, uint64_t address, uint64_t end)
{
	const uint64_t *words =
		block_reader_has(reader, address) ? block_reader_get(reader, address, 16) : NULL;
	uint64_t size;

	if (!words || words[0] > MMAP_HUGE || (words[1] & FLAGS) != IS_MMAPPED)
		return 0;
	size = words[1] & ~(uint64_t)FLAGS;
	/* From 2.43 on without the header. */
	if (size % VIEW_PAGE == VIEW_PAGE - 16)
		size += 16;
	return size && size % VIEW_PAGE == 0 && size <= end - address ? size : 0;
}

static void take(struct search *search, const struct page_range *pages, uint64_t address,
		 uint64_t size)
{
	struct owned_range range = { .start = address, .end = address + size };

	if (search->found->ranges->len >= CHUNKS_MAX ||
	    !g_hash_table_add(search->seen, g_memdup2(&address, sizeof(address))))
		return;
	page_bytes_add(&range.bytes, pages, range.start, range.end);
	g_array_append_val(search->found->ranges, range);
	page_bytes_join(&search->found->bytes, &range.bytes);
	search->found->count++;
}

static bool has_all(const struct search *search)
{
	return search->wanted >= 0 && search->found->count >= (uint64_t)search->wanted;
}

static void look_at(struct search *search, const struct mapping *mapping)
{
	uint64_t count = (mapping->end - mapping->start) / VIEW_PAGE, at = mapping->start, size;
	struct page_range pages = { mapping->start, count, NULL };
	struct block_reader reader;
	ssize_t heap;

	if (count > PAGES_MAX - search->pages)
		return;
	search->pages += count;
	pages.states = g_malloc0(count);
	if (!search->view->pages(search->view->context, pages.first, count, pages.states))
		pages.count = 0;
	block_reader_open(&reader, search->view, &pages, false);
	while (at < mapping->end && pages.count) {
		heap = malloc_heaps_at(search->heaps, at);
		if (heap >= 0) {
			at = (g_array_index(search->heaps->heaps, struct malloc_heap, heap).end +
			      VIEW_PAGE - 1) &
			     ~(VIEW_PAGE - 1);
			continue;
		}
		size = size_at(&reader, at, mapping->end);
		if (size)
			take(search, &pages, at, size);
		else if (!search->by_page || has_all(search) || ++search->searched > SEARCH_MAX)
			break;
		else
			size = VIEW_PAGE;
		at += size;
	}
	block_reader_close(&reader);
	g_free(pages.states);
}

static gint by_start(gconstpointer a, gconstpointer b)
{
	const struct owned_range *left = a, *right = b;

	return left->start < right->start ? -1 : left->start > right->start;
}

void mapped_chunks_find(const struct memory_view *view, const struct maps *maps,
			const struct malloc_heaps *heaps, int64_t wanted,
			struct mapped_chunks *found)
{
	struct search search = { .view = view, .heaps = heaps, .found = found, .wanted = wanted };
	size_t i, pass;

	*found = (struct mapped_chunks){ .ranges = g_array_new(FALSE, FALSE,
							       sizeof(struct owned_range)) };
	search.seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	for (pass = 0; pass < 2 && !has_all(&search); pass++) {
		search.by_page = pass;
		search.pages = 0;
		for (i = 0; i < maps->count && !has_all(&search); i++)
			if (is_candidate(&maps->entries[i]))
				look_at(&search, &maps->entries[i]);
	}
	g_hash_table_destroy(search.seen);
	g_array_sort(found->ranges, by_start);
}

void mapped_chunks_free(struct mapped_chunks *found)
{
	g_clear_pointer(&found->ranges, g_array_unref);
}
