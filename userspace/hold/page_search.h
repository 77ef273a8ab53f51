/* SPDX-License-Identifier: GPL-2.0 */
/*
 * page_search.h: what glibc's allocator has mapped is in no list of its own: it is found by what
 * pages of anonymous mappings begin with.
 */
#ifndef MEMTOLL_PAGE_SEARCH_H
#define MEMTOLL_PAGE_SEARCH_H

#include "hold/block_reader.h"
#include "hold/malloc_state.h"
#include "hold/memory_view.h"

/* What begins at an address. */
struct page_found {
	uint64_t size; /* whole pages; of what is not it: how far nothing else needs to be tried */
	bool is_it;
};

struct page_search {
	const struct memory_view *view;
	const struct maps *maps;
	const struct malloc_heaps *heaps; /* what they hold is passed over */
	/* What begins at address, in a mapping that goes on to end. */
	struct page_found (*look)(void *context, struct block_reader *reader, uint64_t address,
				  uint64_t end);
	/* It is there: called once for each. */
	void (*take)(void *context, const struct page_range *pages, uint64_t start, uint64_t size);
	bool (*has_all)(const void *context);
	void *context;
};

/*
 * First the beginnings of mappings, and what is behind what was found; then every page that is in
 * memory, up to 4 GiB of them that begin with nothing. At most 256 GiB of mappings are looked at,
 * and at most 131,072 finds are taken: vm.max_map_count is 65,530.
 */
void page_search_run(const struct page_search *search);

#endif /* MEMTOLL_PAGE_SEARCH_H */
