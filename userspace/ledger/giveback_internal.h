/* SPDX-License-Identifier: GPL-2.0 */
/*
 * giveback_internal.h: what the parts of giveback share: giveback.c has the processes and the sums,
 * released.c what is given back in place, remapped.c mappings that go and come.
 */
#ifndef MEMTOLL_GIVEBACK_INTERNAL_H
#define MEMTOLL_GIVEBACK_INTERNAL_H

#include <stdbool.h>

#include "base/pagebits.h"
#include "base/ranges.h"
#include "ledger/came_again.h"
#include "ledger/giveback.h"

/* The call that released memory, or got it. */
struct call_site {
	uint64_t stack;
	uint8_t fn;
};

struct pool_key {
	uint64_t stack; /* of the call that maps */
	uint16_t size_class;
	uint16_t fn;
	uint32_t unused;
};

/* Pages released by one call, not used since. */
struct released_pages {
	struct call_site by;
	uint8_t how;
	uint64_t pages;
};

/* Never freed before its process's memory is: mappings point to it. */
struct pool {
	struct pool_key key;
	GArray *released; /* of struct released_pages, the latest last */
};

/* A mapping. range.stack_id and range.fn: who made it. */
struct extent {
	struct range range;
	struct pool *pool; /* NULL: not followed */
	uint64_t used_pages;
	bool arena; /* an arena's heap may be made of it */
	bool stack; /* a thread's, as it was mapped */
};

/* A call that released pages, and how. */
struct release {
	struct call_site by;
	uint8_t how;
};

/*
 * Pages belong to the call that released them until they are used, also when another call releases
 * the range they lie in. Pages that turn out to have been used in between belong to the last.
 */
struct released_range {
	struct range range; /* made_ns: of the last release */
	struct release first;
	struct release last;
	struct call_site mapped_by; /* made the addresses valid again; 0: none needed to */
};

/*
 * Where only some faults are looked at, a page may have been in use, and released, without anybody
 * having seen it. How much of what a call has released had been in use, by those that were seen.
 */
struct release_use {
	struct release release;
	uint64_t released_pages;
	double used_pages; /* estimated */
};

/*
 * The least and the most that a size has been within a slice, from its first fall on; and over all
 * of its life the most by which it fell and then rose again, however long that took.
 */
struct range_of_size {
	uint64_t now;
	uint64_t low;
	uint64_t high;
	bool fell;
	uint64_t peak;
	uint64_t trough; /* since the peak */
	uint64_t came;
};

struct process {
	pid_t pid;
	GTree *extents;
	GTree *released;
	GHashTable *pools; /* struct pool_key -> struct pool */
	struct pagebits *bits;
	GHashTable *release_uses; /* struct release_use, its own key */
	double seen_pages;	  /* in use, as far as was seen, */
	double stood_pages;	  /* and how many they stand for */
	double owed_pages;	  /* less than one that came again, by estimate */
	struct extent *ended;	  /* ENDED_KEPT, or NULL */
	unsigned int ended_next;
	struct range_of_size heap;   /* the break */
	struct range_of_size mapped; /* bytes that calls of the allocator have mapped */
};

struct giveback {
	GHashTable *processes; /* pid -> struct process */
	GHashTable *sums;      /* struct giveback_sum -> itself */
	struct came_again *came_again;
	struct pagebits_budget budget;
	size_t ranges_left;
	bool swept; /* since the last drain: ranges that are all in use again are dropped */
	size_t pools_left;
	uint64_t unfollowed;
};

/* ---- giveback.c ---- */

/* The sum of what this call has released in this way, and one call more in it. */
struct giveback_sum *giveback_called(struct giveback *giveback,
				     const struct memtoll_mapping *mapping, uint8_t how);

/* The sum of what this call has released in this way. */
struct giveback_sum *giveback_sum_of(struct giveback *giveback, pid_t pid, uint8_t how,
				     const struct call_site *by);

/* Pages of a run had been released, and are in use again. */
void giveback_reused(struct giveback *giveback, const struct memtoll_run *run, uint8_t how,
		     const struct call_site *by, const struct call_site *got, uint64_t pages);

/*
 * Add a range to a tree, or free it: it is not followed once there are too many; its pages are
 * counted.
 */
bool giveback_range_put(struct giveback *giveback, GTree *ranges, struct range *range);
void giveback_range_drop(struct giveback *giveback, GTree *ranges, struct range *range);

void range_of_size_add(struct range_of_size *size, uint64_t up, uint64_t down);

/* ---- released.c ---- */

GHashTable *release_uses_new(void);

/* A call releases [start, end): pages in use go, the addresses stay mapped. */
void released_add(struct giveback *giveback, struct process *process,
		  const struct memtoll_mapping *mapping, uint8_t how, uint64_t start, uint64_t end);

/* The break has risen over [start, end). */
void released_heap_grew(struct giveback *giveback, struct process *process,
			const struct memtoll_mapping *mapping, uint64_t start, uint64_t end);

/* Something else is there from now on. */
void released_forget(struct giveback *giveback, struct process *process, uint64_t start,
		     uint64_t end);

/*
 * Pages of a run from start on, as far as *end, which may come nearer: how many of them had been
 * released. owner: who made the block they lie in, if that is known.
 */
uint64_t released_use(struct giveback *giveback, struct process *process,
		      const struct memtoll_run *run, uint64_t start, uint64_t *end,
		      const struct call_site *owner);

/* ---- remapped.c ---- */

void extents_mmap(struct giveback *giveback, struct process *process,
		  const struct memtoll_mapping *mapping);
void extents_munmap(struct giveback *giveback, struct process *process,
		    const struct memtoll_mapping *mapping, uint64_t start, uint64_t end);
void extents_mremap(struct giveback *giveback, struct process *process,
		    const struct memtoll_mapping *mapping);

/* Pages of a run that are new in the mappings there; `back` of them had been released in place. */
void extents_use(struct giveback *giveback, struct process *process, const struct memtoll_run *run,
		 uint64_t start, uint64_t end, uint64_t back);

#endif /* MEMTOLL_GIVEBACK_INTERNAL_H */
