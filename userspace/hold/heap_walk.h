/* SPDX-License-Identifier: GPL-2.0 */
/*
 * heap_walk.h: a heap of glibc's, chunk by chunk, by the sizes in their headers. The process goes on
 * meanwhile: what does not fit is read again, and then passed over and counted.
 */
#ifndef MEMTOLL_HEAP_WALK_H
#define MEMTOLL_HEAP_WALK_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "hold/malloc_state.h"
#include "hold/memory_view.h"

/* Entries that are kept of all heaps; half of them of chunks that are live by their headers. */
#define CHUNKS_KEPT (4U << 20)
#define CHUNKS_KEPT_MAX (32U << 20)
#define PAGES_MAX (64U << 20) /* of all heaps that are walked: 256 GiB */
#define CACHES_MAX 4096U      /* chunks that may be a thread's tcache */
#define CACHE_WORDS 95	      /* 76 counts of two bytes, 76 links */

enum chunk_kind {
	CHUNK_LIVE,
	CHUNK_CACHED, /* in a thread's tcache */
	CHUNK_FAST,
	CHUNK_SMALL,
	CHUNK_LARGE,
	CHUNK_UNSORTED,
	CHUNK_TOP,
	CHUNK_KINDS,
};

const char *chunk_kind_name(enum chunk_kind kind);

#define SMALL_LEAST 32	 /* MINSIZE: no chunk is less */
#define LARGE_LEAST 1024 /* MIN_LARGE_SIZE */

/* What is free, and what may be in a list of free chunks though its header says that it is live. */
struct kept_chunk {
	uint64_t address;
	uint64_t size;
	uint64_t link;	 /* the first word */
	uint32_t before; /* size of the live chunk before it, at most UINT32_MAX; 0: none */
	uint8_t kind;	 /* CHUNK_LIVE: as its header says */
	bool linked;	 /* link is set */
};

/* A live chunk that has the size of struct tcache_perthread_struct. */
struct cache_chunk {
	uint64_t address;
	uint64_t size;
	uint32_t heap;
	uint64_t words[CACHE_WORDS];
};

/* A place that fits no chunk, and the header that leads to it. */
struct damage {
	uint64_t address;
	uint64_t words[2];
	uint64_t before; /* 0: none */
	uint64_t before_word;
};

struct heap_chunks {
	struct malloc_heap *heap;
	struct page_range pages;
	uint64_t counts[CHUNK_KINDS];
	struct page_bytes bytes[CHUNK_KINDS];
	struct page_bytes overhead;  /* of heap and arena themselves */
	struct page_bytes unread;    /* by damage, or as it was changing */
	struct page_bytes hidden;    /* by headers in pages that are swapped out */
	size_t kept_first, kept_end; /* into heap_walk.kept */
	uint64_t left_out;	     /* entries that were not kept */
	uint64_t unfollowed_count;   /* of them, live chunks that may be in a list all the same */
	struct page_bytes unfollowed;
	uint64_t end_of_live; /* of the last live chunk */
	unsigned int read_again;
	unsigned int damages; /* places whose size fits nothing, read twice */
	struct damage damage; /* the first of them */
	bool corrupt;	      /* it was found twice, the same */
};

struct heap_walk {
	const struct memory_view *view;
	const struct malloc_heaps *heaps;
	const GArray *locked; /* of struct locked_range; NULL: none */
	GArray *kept;	      /* of struct kept_chunk, ascending */
	GArray *caches;	      /* of struct cache_chunk */
	GArray *chunks;	      /* of struct heap_chunks, as heaps */
	uint64_t pages;	      /* so far */
	uint64_t kept_most;   /* CHUNKS_KEPT where nothing else is said */
	uint64_t left_out;    /* entries that were not kept */
	uint64_t searched;    /* headers looked at to find where chunks begin */
	uint64_t damages;     /* of all walks */
	uint64_t pauses;      /* before walks again */
	bool read_swapped;    /* read pages that are swapped out, which brings them back */
	bool gone;	      /* the process: what was found is nothing */
};

void heap_walk_init(struct heap_walk *walk, const struct memory_view *view,
		    const struct malloc_heaps *heaps, bool read_swapped);
/* All heaps. */
void heap_walk_run(struct heap_walk *walk);
void heap_walk_free(struct heap_walk *walk);

/* The entry of kept at this address, or NULL. */
struct kept_chunk *heap_walk_find(const struct heap_walk *walk, uint64_t address);

#endif /* MEMTOLL_HEAP_WALK_H */
