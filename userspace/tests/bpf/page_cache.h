/* SPDX-License-Identifier: GPL-2.0 */
/*
 * page_cache.h: page caches of the test's files: nodes of 64 slots, as lib/xarray.c makes them.
 */
#ifndef TESTS_BPF_PAGE_CACHE_H
#define TESTS_BPF_PAGE_CACHE_H

#include <cmocka.h>

#include "tests/bpf/native.h"

#define CACHE_NODES 32
#define CACHE_SLOTS 64

/* A page frame's descriptor, and a value: xa_mk_value() of include/linux/xarray.h. */
#define CACHE_FOLIO 0xffffea0000123440ULL
#define CACHE_VALUE(value) ((value) << 1 | 1)

struct page_cache {
	struct address_space mapping;
	struct xa_node nodes[CACHE_NODES];
	unsigned used;
};

static inline void cache_begin(struct page_cache *cache)
{
	memset(cache, 0, sizeof(*cache));
	kernel_object(cache, sizeof(*cache));
}

static inline void *cache_node(struct page_cache *cache, unsigned shift)
{
	struct xa_node *node = &cache->nodes[cache->used++];

	assert_in_range(cache->used, 1, CACHE_NODES);
	node->shift = shift;
	node->array = &cache->mapping.i_pages;
	return (void *)((__u64)node + 2);
}

static inline struct xa_node *cache_node_of(void *entry)
{
	return (struct xa_node *)((__u64)entry - 2);
}

/* Put an entry at an index; order: of so many pages, two to that power, in the slot of the first. */
static inline void cache_put(struct page_cache *cache, __u64 index, unsigned order, __u64 entry)
{
	void **slot = &cache->mapping.i_pages.xa_head, *top;
	unsigned shift, offset, i;
	struct xa_node *node;

	if (!*slot)
		*slot = cache_node(cache, order / 6 * 6);
	while (index >> cache_node_of(*slot)->shift >= CACHE_SLOTS) {
		top = cache_node(cache, cache_node_of(*slot)->shift + 6);
		cache_node_of(top)->slots[0] = *slot;
		*slot = top;
	}
	for (;;) {
		node = cache_node_of(*slot);
		shift = node->shift;
		offset = index >> shift & (CACHE_SLOTS - 1);
		slot = &node->slots[offset];
		if (shift <= order)
			break;
		if (!*slot)
			*slot = cache_node(cache, shift - 6);
	}
	*slot = (void *)entry;
	for (i = 1; i < 1U << (order - shift); i++)
		slot[i] = (void *)(__u64)(offset << 2 | 2);
}

#endif /* TESTS_BPF_PAGE_CACHE_H */
