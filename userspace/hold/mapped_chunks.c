// SPDX-License-Identifier: GPL-2.0
#include "hold/mapped_chunks.h"

#include "hold/chunk_header.h"
#include "hold/page_search.h"

#define MMAP_HUGE 1U /* in the word before the size; from 2.43 on */

struct search {
	struct mapped_chunks *found;
	int64_t wanted;
};

uint64_t mapped_chunk_size(struct block_reader *reader, uint64_t address, uint64_t end)
{
	const uint64_t *words = block_reader_get(reader, address, 16);
	uint64_t size;

	if (!words || words[0] > MMAP_HUGE || (words[1] & CHUNK_FLAGS) != CHUNK_IS_MMAPPED)
		return 0;
	size = words[1] & ~CHUNK_FLAGS;
	/* From 2.43 on without the header. */
	if (size % VIEW_PAGE == VIEW_PAGE - 16)
		size += 16;
	return size && size % VIEW_PAGE == 0 && size <= end - address ? size : 0;
}

static struct page_found look(void *context, struct block_reader *reader, uint64_t address,
			      uint64_t end)
{
	uint64_t size = mapped_chunk_size(reader, address, end);

	(void)context;
	return (struct page_found){ size ? size : VIEW_PAGE, size != 0 };
}

static void take(void *context, const struct page_range *pages, uint64_t start, uint64_t size)
{
	struct mapped_chunks *found = ((struct search *)context)->found;
	struct owned_range range = { .start = start, .end = start + size };

	page_bytes_add(&range.bytes, pages, range.start, range.end);
	g_array_append_val(found->ranges, range);
	page_bytes_join(&found->bytes, &range.bytes);
	found->count++;
}

static bool has_all(const void *context)
{
	const struct search *search = context;

	return search->wanted >= 0 && search->found->count >= (uint64_t)search->wanted;
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
	struct search search = { .found = found, .wanted = wanted };
	const struct page_search pages = {
		.view = view,
		.maps = maps,
		.heaps = heaps,
		.look = look,
		.take = take,
		.has_all = has_all,
		.context = &search,
	};

	*found = (struct mapped_chunks){ .ranges = g_array_new(FALSE, FALSE,
							       sizeof(struct owned_range)) };
	page_search_run(&pages);
	g_array_sort(found->ranges, by_start);
}

void mapped_chunks_free(struct mapped_chunks *found)
{
	g_clear_pointer(&found->ranges, g_array_unref);
}
