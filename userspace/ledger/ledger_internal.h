/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ledger_internal.h: what the ledger's two files share: ledger.c has blocks and charges, regions.c
 * the mappings.
 */
#ifndef MEMTOLL_LEDGER_INTERNAL_H
#define MEMTOLL_LEDGER_INTERNAL_H

#include "base/ranges.h"
#include "ledger/ledger.h"

/* Ended ranges are remembered for runs of other threads that arrive late. */
#define ENDED_KEPT 256

struct process_ledger {
	pid_t pid;
	GTree *blocks;	     /* live blocks of the allocator */
	GTree *regions;	     /* live mappings of the program, whole pages */
	struct range *ended; /* ENDED_KEPT of them, or NULL: nothing has ended */
	unsigned int ended_next;
	uint64_t last_ended_ns; /* the latest end in ended[] */
	bool exited;		/* and no other process has its number yet */
};

struct ledger {
	GHashTable *processes; /* pid -> struct process_ledger */
	GHashTable *charges;   /* struct charge -> itself */
	GHashTable *seen;      /* pid -> struct seen: unspoken.c */
	GHashTable *lives;     /* struct life -> itself */
	GHashTable *callers;   /* tid -> struct caller */
	struct accesses *accesses;
	uint64_t min_size;
	uint64_t unmatched_frees;
	uint64_t looks;	 /* at what was seen, that have seen anything */
	uint64_t drains; /* how often it was drained */
	bool charged;	 /* since the last one */
	bool thinned;	 /* not all faults are looked at: no page is known to be unused */
	run_fn *on_run;
	void *on_run_context;
	unspoken_fn *on_unspoken;
	void *on_unspoken_context;
};

/* pid -> what was seen of it, most of it lately. */
GHashTable *unspoken_new(void);
/* Charges are about to be drained: what faults that are passed over may have been (unspoken.c). */
void unspoken_keep(struct ledger *ledger);

/* The sums of one allocation site since the last drain. */
struct life *ledger_life(struct ledger *ledger, pid_t pid, uint8_t fn, uint64_t stack_id);

/* The block's memory is no longer its own. The range is freed. */
void ledger_end_block(struct ledger *ledger, struct process_ledger *process, struct range *block,
		      uint64_t ended_ns);

/* Keep a copy of a range that ends, for runs that arrive late. */
void ledger_remember(struct process_ledger *process, const struct range *range, uint64_t ended_ns);

/* What a successful mapping call changed. */
void regions_change(struct ledger *ledger, struct process_ledger *process,
		    const struct memtoll_mapping *mapping);

GTree *regions_new(void);

/* Is the part an allocation, and do faults in areas of this kind (AREA_*) belong to such? */
bool region_owns(const struct range *part, uint8_t area);
bool region_area(uint8_t area);

/* A child's copy of its parent's regions. */
void regions_inherit(GTree *from, GTree *to);

#endif /* MEMTOLL_LEDGER_INTERNAL_H */
