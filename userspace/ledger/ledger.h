/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ledger.h: the live allocations of every process, and what the faults on them cost.
 *
 * Pure: records in, facts out; no I/O, no clock. Records arrive in the order of the ring buffer.
 * An allocation is a block of the allocator or a region: an anonymous mapping that the program
 * made itself. A run of faults is charged to the block it falls in, else to the region, a run that
 * covers several in parts. A block that overlaps a live one proves that that one was freed.
 *
 * Faults of areas AREA_ANON, AREA_SHARED and AREA_UNKNOWN alone are charged to regions.
 */
#ifndef MEMTOLL_LEDGER_H
#define MEMTOLL_LEDGER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/records.h"
#include "ledger/page_access.h"

/* Beside enum memtoll_fn: allocated by the program's own mmap. */
#define ALLOCATED_MMAP 0xff

/* Mappings of less are not allocations. */
#define LEDGER_MIN_SIZE (64ULL << 10)

struct ledger;

struct ledger *ledger_new(void);
void ledger_free(struct ledger *ledger);

/* In bytes, LEDGER_MIN_SIZE unless set; for mappings made from now on. */
void ledger_set_min_size(struct ledger *ledger, uint64_t bytes);
/* From now on not all faults are looked at, and a page without one may be used all the same. */
void ledger_thinned(struct ledger *ledger);
/*
 * So many faults of a process were passed over and no other has spoken for them. They are what those
 * of it were that were seen since the last drain, in proportion, or else those seen last: of those
 * that spoke for others, if any did. pid 0: of processes that have ended, of which too little was
 * seen: what those of others were that have. last: no more will be seen; where nothing is known,
 * they are what those of all were that were seen last. False: they are nowhere, as nothing is known.
 */
bool ledger_unspoken(struct ledger *ledger, pid_t pid, uint64_t faults, bool last);

void ledger_block(struct ledger *ledger, const struct memtoll_block *block);
void ledger_run(struct ledger *ledger, const struct memtoll_run *run);
void ledger_mapping(struct ledger *ledger, const struct memtoll_mapping *mapping);
void ledger_fork(struct ledger *ledger, pid_t parent, pid_t child);
void ledger_exec(struct ledger *ledger, pid_t pid);

/*
 * The last thread of pid has ended: its memory is gone, not freed. Facts not yet drained come with
 * the next drain and the next ledger_each_access.
 */
void ledger_exit(struct ledger *ledger, pid_t pid);
/* No records of it will come any more; what is not drained yet stays. */
void ledger_forget(struct ledger *ledger, pid_t pid);

/*
 * Facts since the last drain. allocated_stack and allocated_fn are 0 where the faults fell in no
 * followed allocation; inode and dev name the area's file there and are 0 elsewhere. One call per
 * distinct key; sums of run figures.
 */
struct charge {
	pid_t pid;
	uint64_t allocated_stack;
	uint64_t touched_stack;
	uint8_t allocated_fn;
	uint8_t fault_class;
	uint8_t area;
	uint8_t in_fn;
	bool major;
	bool memset; /* the instruction is memset's, and clears */
	uint32_t dev;
	uint64_t inode;
	uint64_t faults;
	uint64_t spoken; /* of these: were passed over, and others spoke for them */
	uint64_t pages;
	uint64_t timed_faults;
	uint64_t timed_cpu_ns;
	uint64_t timed_cpu_us2;
	uint64_t blocked_ns;
};

/*
 * Blocks and regions made and ended. A region (fn ALLOCATED_MMAP) is freed when its last part is,
 * and made_bytes grows with it. What a child inherited is counted in the parent alone.
 */
struct life {
	pid_t pid;
	uint8_t fn;
	uint64_t stack_id;
	uint64_t made;
	uint64_t made_bytes;
	uint64_t freed;
	uint64_t freed_bytes;
	uint64_t never_used_bytes;
};

typedef void charge_fn(void *context, const struct charge *charge);
typedef void life_fn(void *context, const struct life *life);
typedef void run_fn(void *context, const struct memtoll_run *run, uint64_t allocated_stack,
		    uint8_t allocated_fn);
typedef void unspoken_fn(void *context, const struct memtoll_run *part);

/* Called for every run, or part of one, as soon as it is charged. */
void ledger_on_run(struct ledger *ledger, run_fn *callback, void *context);
/* Called for each part of faults of ledger_unspoken: pid, class, faults and pages; no run has it. */
void ledger_on_unspoken(struct ledger *ledger, unspoken_fn *callback, void *context);

void ledger_drain(struct ledger *ledger, charge_fn *on_charge, life_fn *on_life, void *context);

/*
 * How the pages of each site are used: every site whose figures have changed since the last call.
 * Drain first: runs inside open calls wait for that.
 */
void ledger_each_access(struct ledger *ledger, access_fn *on_access, void *context);

/* Swap-ins whose page could not be followed, since the start. */
uint64_t ledger_untracked_returns(const struct ledger *ledger);

/* Frees of blocks that were not seen made, since the start. */
uint64_t ledger_unmatched_frees(const struct ledger *ledger);

/*
 * The first live block that a run touched: who made it. False: none that is known, or that was
 * made before the run ended.
 */
bool ledger_block_of(const struct ledger *ledger, const struct memtoll_run *run, uint64_t *stack_id,
		     uint8_t *fn);

/* The live block at an address, or else the region: who made it. False: none that is known. */
bool ledger_owner(const struct ledger *ledger, pid_t pid, uint64_t address, uint64_t *stack_id,
		  uint8_t *fn);

#endif /* MEMTOLL_LEDGER_H */
