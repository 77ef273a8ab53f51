/* SPDX-License-Identifier: GPL-2.0 */
/*
 * allocator_counters.h: what jemalloc, tcmalloc and mimalloc count themselves. Distributions strip
 * the names of these counters: they are found by what they look like in the allocator's data, where
 * several of them have to agree with each other, or not at all. Nothing is called in the process.
 */
#ifndef MEMTOLL_ALLOCATOR_COUNTERS_H
#define MEMTOLL_ALLOCATOR_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocators/modules.h"
#include "hold/memory_view.h"
#include "host/maps.h"

/* In bytes. What an allocator does not count is 0. */
struct allocator_counters {
	bool known;
	uint64_t active;    /* pages with live blocks, or blocks in caches */
	uint64_t dirty;	    /* free pages, kept */
	uint64_t muzzy;	    /* free pages, given back when the kernel needs them (MADV_FREE) */
	uint64_t retained;  /* given back; the address space is kept */
	uint64_t committed; /* mimalloc's: of it no more is counted */
};

/* Where its data is: writable mappings of its file, and the anonymous memory right behind. */
struct counters_place {
	const struct memory_view *view;
	const struct maps *maps;
	const struct allocator_module *module;
	const struct mapping *const *data;
	size_t data_count;
};

/* known stays false where they are not found, or it is another allocator. */
void allocator_counters_read(const struct counters_place *place,
			     struct allocator_counters *counters);

/* Why they are not, in general. */
const char *allocator_counters_unknown(enum allocator_kind kind);

#endif /* MEMTOLL_ALLOCATOR_COUNTERS_H */
