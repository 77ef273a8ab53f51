/* SPDX-License-Identifier: GPL-2.0 */
/*
 * malloc_state.h: the arenas and heaps of glibc's allocator in a process's memory (malloc/malloc.c,
 * malloc/arena.c). What is read may be anything: sizes, rings and chains are bounded, and what does
 * not fit is not known.
 */
#ifndef MEMTOLL_MALLOC_STATE_H
#define MEMTOLL_MALLOC_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hold/memory_view.h"
#include "host/maps.h"

#define ARENAS_MAX 8192U	 /* glibc makes at most eight for each processor */
#define HEAPS_MAX 65536U	 /* of all arenas */
#define HEAP_BYTES (64ULL << 20) /* HEAP_MAX_SIZE: heaps of threads' arenas are aligned to it */
#define FAST_BINS 10
#define BIN_WORDS 254 /* pairs of first and last */

/* What mp_ has; a count of -1: not known. */
struct malloc_numbers {
	uint64_t trim_threshold;
	uint64_t top_pad;
	uint64_t mmap_threshold;
	uint64_t arena_max;
	int64_t mmaps;	       /* n_mmaps */
	uint64_t mmapped;      /* mmapped_mem */
	uint64_t sbrk_base;    /* 0: not known */
	uint64_t tcache_count; /* 0: no tcache, or not known */
	uint64_t thp_page;
};

struct malloc_arena {
	uint64_t address;
	uint64_t top_at; /* the address of the pointer to it */
	uint64_t top;
	uint64_t system_bytes;
	uint64_t system_peak;
	uint64_t threads; /* attached */
	bool contiguous;  /* of the main one: all of it by sbrk(2) */
	uint64_t fast[FAST_BINS];
	uint64_t bins[BIN_WORDS];
};

struct malloc_heap {
	uint64_t start; /* of the memory */
	uint64_t first; /* the first chunk */
	uint64_t end;
	uint64_t mapped; /* the end of what was mapped there */
	uint64_t limit;	 /* of how far it may have grown since */
	uint64_t top;	 /* 0: the arena's top is in another one */
	uint32_t arena;
	bool main;     /* of the main arena: by sbrk(2), or in its place by mmap(2) */
	bool brk;      /* the top ends at the program break: it can be trimmed */
	bool searched; /* it was found by what its memory looks like: mapped_heaps.h */
};

struct malloc_heaps {
	struct malloc_numbers numbers;
	GArray *arenas;	      /* of struct malloc_arena; the first is main_arena */
	GArray *heaps;	      /* of struct malloc_heap, ascending */
	unsigned int version; /* 236: glibc 2.36; 0: not known */
	bool mangled;	      /* links of tcache and fast chunks */
	uint64_t lost_heaps;  /* of which no place was found, or which did not fit */
};

/*
 * Where main_arena is: in libc's data, found by what it looks like. The bins of a heap are pairs of
 * pointers, of which the empty ones point at themselves, and arenas are in a ring. NULL: found; else
 * why it is not known. par: address of mp_, 0: not known. data: mappings of libc's data (or of a
 * static program's).
 */
const char *malloc_heaps_find(const struct memory_view *view, const struct maps *maps,
			      const struct mapping *const *data, size_t data_count, uint64_t par,
			      unsigned int version, struct malloc_heaps *found);
/*
 * Where the arena's top begins, between from and most, and its size, of one moment, if a few tries
 * are enough: the program goes on. False: it is somewhere else, or what is there is none.
 */
bool malloc_top_read(const struct memory_view *view, const struct malloc_arena *arena,
		     uint64_t from, uint64_t most, uint64_t *top, uint64_t *size);
/*
 * The arena's top may have moved since it was read: where the heap's last chunk begins and ends now.
 * most: the heap ends there at the latest.
 */
void malloc_heap_refresh(const struct memory_view *view, const struct malloc_heaps *found,
			 struct malloc_heap *heap, uint64_t most);
/* One more, if it has any memory, and they are not too many. */
void malloc_heaps_take(struct malloc_heaps *found, const struct malloc_heap *heap);
/* The number of the heap that holds address, or -1. */
ssize_t malloc_heaps_at(const struct malloc_heaps *found, uint64_t address);
void malloc_heaps_free(struct malloc_heaps *found);

#endif /* MEMTOLL_MALLOC_STATE_H */
