// SPDX-License-Identifier: GPL-2.0
#include "hold/block_reader.h"

#include <glib.h>

#define BLOCK_MOST (1U << 20)
#define BLOCK_LEAST (4 * VIEW_PAGE)

void block_reader_open(struct block_reader *reader, const struct memory_view *view,
		       struct page_range *pages, bool read_swapped)
{
	*reader = (struct block_reader){ .view = view,
					 .pages = pages,
					 .read_swapped = read_swapped,
					 .block = g_malloc(BLOCK_MOST),
					 .wanted = BLOCK_LEAST };
}

void block_reader_close(struct block_reader *reader)
{
	g_clear_pointer(&reader->block, g_free);
}

static bool may_read(const struct block_reader *reader, uint64_t page)
{
	uint8_t state = page < reader->pages->count ? reader->pages->states[page] : PAGE_ABSENT;

	return state == PAGE_RESIDENT || (state == PAGE_SWAPPED && reader->read_swapped);
}

static uint64_t page_of(const struct block_reader *reader, uint64_t address)
{
	return (address - reader->pages->first) / VIEW_PAGE;
}

/* A page that cannot be read: it is not tried again. */
static void forget_page(struct block_reader *reader, uint64_t page)
{
	uint8_t state;

	reader->size = 0;
	if (!reader->view->pages(reader->view->context, reader->start, 1, &state))
		reader->gone = true;
	reader->pages->states[page] = PAGE_ABSENT;
}

/* The block from the page of address on. */
static bool fill(struct block_reader *reader, uint64_t address)
{
	uint64_t page = page_of(reader, address), end = page;
	uint64_t behind = reader->start + reader->size;

	if (address >= behind && address - behind <= VIEW_PAGE)
		reader->wanted = MIN(2 * reader->wanted, BLOCK_MOST);
	else if (address < reader->start || address >= behind + BLOCK_LEAST)
		reader->wanted = BLOCK_LEAST;
	while (end - page < reader->wanted / VIEW_PAGE && may_read(reader, end))
		end++;
	reader->blocks++;
	reader->start = reader->pages->first + page * VIEW_PAGE;
	reader->size = (end - page) * VIEW_PAGE;
	if (reader->size &&
	    reader->view->read(reader->view->context, reader->start, reader->block, reader->size))
		return true;
	if (!reader->size)
		return false;
	/* One of them may have gone away since its state was read: the first alone. */
	if (end - page > 1 &&
	    reader->view->read(reader->view->context, reader->start, reader->block, VIEW_PAGE)) {
		reader->size = VIEW_PAGE;
		return true;
	}
	forget_page(reader, page);
	return false;
}

const void *block_reader_get(struct block_reader *reader, uint64_t address, uint64_t size)
{
	if (address < reader->start || address - reader->start >= reader->size ||
	    size > reader->size - (address - reader->start)) {
		if (!fill(reader, address) || size > reader->size - (address - reader->start))
			return NULL;
	}
	return reader->block + (address - reader->start);
}

void block_reader_forget(struct block_reader *reader)
{
	reader->size = 0;
}

bool block_reader_has(const struct block_reader *reader, uint64_t address)
{
	return may_read(reader, page_of(reader, address));
}

uint64_t block_reader_next(const struct block_reader *reader, uint64_t address)
{
	uint64_t page = page_of(reader, address);

	while (page < reader->pages->count && !may_read(reader, page))
		page++;
	return reader->pages->first + page * VIEW_PAGE;
}

bool block_reader_is_swapped(const struct block_reader *reader, uint64_t address)
{
	uint64_t page = page_of(reader, address);

	return page < reader->pages->count && reader->pages->states[page] == PAGE_SWAPPED;
}
