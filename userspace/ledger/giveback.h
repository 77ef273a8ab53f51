/* SPDX-License-Identifier: GPL-2.0 */
/*
 * giveback.h: memory that a process releases to the kernel and uses again.
 *
 * Pure: records in, facts out. Given back is what was in use (a fault had brought it in) and is
 * taken out of the process by munmap, a falling break, madvise MADV_DONTNEED and its like, or a
 * fixed mapping laid over it. It is back when a page of it faults in again: at the same address;
 * after munmap in a new mapping of about the same size, made by the same call. Only first-touch
 * faults on anonymous memory count, so that no page counts twice.
 */
#ifndef MEMTOLL_GIVEBACK_H
#define MEMTOLL_GIVEBACK_H

#include <linux/types.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/records.h"

struct giveback;

enum giveback_how {
	GIVEBACK_MUNMAP = 0,
	GIVEBACK_BRK = 1,
	GIVEBACK_DONTNEED = 2,	     /* MADV_DONTNEED, MADV_REMOVE: gone at once */
	GIVEBACK_FREE = 3,	     /* MADV_FREE: gone when memory is short */
	GIVEBACK_FIXED = 4,	     /* mmap of MAP_FIXED over memory in use */
	GIVEBACK_HEAP = 5,	     /* munmap of a whole heap of one of glibc's arenas */
	GIVEBACK_STACK = 6,	     /* a thread's stack, by MADV_DONTNEED at the thread's end */
	GIVEBACK_STACK_UNMAPPED = 7, /* munmap of what was mapped as a thread's stack */
	GIVEBACK_HOWS = 8,
};

const char *giveback_how_name(enum giveback_how how);

struct giveback *giveback_new(void);
void giveback_free(struct giveback *giveback);

/* A successful mapping call, as the ring buffer has it. */
void giveback_mapping(struct giveback *giveback, const struct memtoll_mapping *mapping);

/* A run of faults, and the block it is known to lie in: who made that; 0: not known (yet). */
void giveback_run(struct giveback *giveback, const struct memtoll_run *run, uint64_t owner_stack,
		  uint8_t owner_fn);

/*
 * Faults for whom none that was seen has spoken (ledger_on_unspoken): so many of part's class, with so
 * many pages. As many of them count as come again as of those that were seen.
 */
void giveback_unspoken(struct giveback *giveback, const struct memtoll_run *part);

/* The memory of a process is gone, or its id is another's. */
void giveback_restart(struct giveback *giveback, pid_t pid);

/*
 * Facts since the last drain, one call per distinct key. Given: calls, gave_pages, largest_bytes
 * and span_bytes, the rest 0. Got again: got_* and fault_class say by whom and how, again_* how
 * much.
 */
struct giveback_sum {
	pid_t pid;
	uint64_t gave_stack;
	uint64_t got_stack;  /* 0 of what was given, and where it is not known */
	uint8_t how;	     /* enum giveback_how */
	uint8_t gave_fn;     /* enum memtoll_fn that made the call; 0: the program itself */
	uint8_t got_fn;	     /* enum memtoll_fn that got the addresses, or in which the fault was */
	uint8_t fault_class; /* enum memtoll_fault_class */
	uint64_t calls;
	uint64_t thread_calls; /* of them, by other threads than the first */
	uint64_t gave_pages;
	uint64_t largest_bytes; /* the most that one call gave back, used or not */
	uint64_t span_bytes;	/* how far the process's memory of this kind went up and down */
	uint64_t again_faults;
	uint64_t again_pages;
	uint64_t twice_pages; /* of them, by calloc's memset: cleared by the kernel and once more */
};

typedef void giveback_fn(void *context, const struct giveback_sum *sum);

void giveback_drain(struct giveback *giveback, giveback_fn *on_sum, void *context);

/*
 * Pages given back, or that may have been, that are not followed for want of memory; since the
 * start.
 */
uint64_t giveback_unfollowed(const struct giveback *giveback);

#endif /* MEMTOLL_GIVEBACK_H */
