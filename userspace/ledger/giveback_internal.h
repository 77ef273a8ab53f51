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
#include "ledger/giveback.h"

/* Who gave something back, or got it. */
struct party {
	uint64_t stack;
	uint8_t fn;
};

struct pool_key {
	uint64_t stack;		/* of the call that maps */
	uint16_t size_class;
	uint16_t fn;
	uint32_t unused;
};

/* Pages given back by one call, not got again. */
struct donation {
	struct party gave;
	uint64_t pages;
};

/* Never freed before its process's memory is: mappings point to it. */
struct pool {
	struct pool_key key;
	GArray *donations;	/* of struct donation, the last to give last */
};

/* A mapping. range.stack_id and range.fn: who made it. */
struct extent {
	struct range range;
	struct pool *pool;	/* NULL: not followed */
	uint64_t used_pages;
};

/* A call that gave pages back, and the way it did. */
struct giver {
	struct party by;
	uint8_t how;
};

/*
 * Pages that are away stay those of the call that gave them, also when another gives the range they
 * lie in. Pages that turn out to have been in use in between are of the last.
 */
struct gift {
	struct range range;	/* made_ns: when the last gave it */
	struct giver gave;
	struct giver last;
	struct party got;	/* the call that made the addresses valid again; 0: none needed */
};

/* How far an amount goes up and down within a slice, from its first fall on. */
struct swing {
	uint64_t now;
	uint64_t low;
	uint64_t high;
	bool fell;
};

struct process {
	pid_t pid;
	GTree *extents;
	GTree *gifts;
	GHashTable *pools;	/* struct pool_key -> struct pool */
	struct pagebits *bits;
	struct extent *ended;	/* ENDED_KEPT, or NULL */
	unsigned int ended_next;
	struct swing heap;	/* the break */
	struct swing mapped;	/* bytes that calls of the allocator have mapped */
};

struct giveback {
	GHashTable *processes;	/* pid -> struct process */
	GHashTable *sums;	/* struct giveback_sum -> itself */
	struct pagebits_budget budget;
	size_t ranges_left;
	bool swept;		/* since the last drain: gifts of which all is back are dropped */
	size_t pools_left;
	uint64_t unfollowed;
};

/* ---- giveback.c ---- */

/* The sum of what was given back this way by this call. */
struct giveback_sum *giveback_given(struct giveback *giveback, pid_t pid, uint8_t how,
				    const struct party *gave);

/* Pages of a run are back. */
void giveback_again(struct giveback *giveback, const struct memtoll_run *run, uint8_t how,
		    const struct party *gave, const struct party *got, uint64_t pages);

/*
 * Add a range to a tree, or free it: it is not followed once there are too many; its pages are
 * counted.
 */
bool giveback_range_put(struct giveback *giveback, GTree *ranges, struct range *range);
void giveback_range_drop(struct giveback *giveback, GTree *ranges, struct range *range);

void swing_to(struct swing *swing, uint64_t now);
void swing_by(struct swing *swing, uint64_t up, uint64_t down);

/* ---- released.c ---- */

/* Pages of [start, end) that are in use are gone; the addresses stay those of the process. */
void gifts_give(struct giveback *giveback, struct process *process,
		const struct memtoll_mapping *mapping, uint8_t how, uint64_t start, uint64_t end);

/* The break has risen over [start, end): by whom. */
void gifts_heap_grew(struct giveback *giveback, struct process *process,
		     const struct memtoll_mapping *mapping, uint64_t start, uint64_t end);

/* Something else is there from now on. */
void gifts_forget(struct giveback *giveback, struct process *process, uint64_t start,
		  uint64_t end);

/*
 * Pages of a run from start on, as far as *end, which may come nearer: how many of them are back.
 * owner: who made the block they lie in, if that is known.
 */
uint64_t gifts_use(struct giveback *giveback, struct process *process,
		   const struct memtoll_run *run, uint64_t start, uint64_t *end,
		   const struct party *owner);

/* ---- remapped.c ---- */

void extents_mmap(struct giveback *giveback, struct process *process,
		  const struct memtoll_mapping *mapping);
void extents_munmap(struct giveback *giveback, struct process *process,
		    const struct memtoll_mapping *mapping, uint64_t start, uint64_t end);
void extents_mremap(struct giveback *giveback, struct process *process,
		    const struct memtoll_mapping *mapping);

/* Pages of a run that are new in the mappings there; `back` of them were given back in place. */
void extents_use(struct giveback *giveback, struct process *process,
		 const struct memtoll_run *run, uint64_t start, uint64_t end, uint64_t back);

#endif /* MEMTOLL_GIVEBACK_INTERNAL_H */
