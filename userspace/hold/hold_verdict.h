/* SPDX-License-Identifier: GPL-2.0 */
/* hold_verdict.h: what holds most of the memory, in a sentence, and what would free how much. */
#ifndef MEMTOLL_HOLD_VERDICT_H
#define MEMTOLL_HOLD_VERDICT_H

#include "hold/hold.h"

/* Resident bytes, each in one part. */
enum hold_part {
	PART_LIVE,	/* blocks that the program has not freed */
	PART_TRIM,	/* free, and malloc_trim(0) would give it back */
	PART_PINNED,	/* free, on pages that something live is on */
	PART_LOCKED,	/* free in whole pages, which mlock(2) has locked in memory */
	PART_TOPS,	/* free, at the ends of threads' arenas */
	PART_CACHED,	/* free, in threads' caches */
	PART_UNREAD,	/* in heaps, not known what */
	PART_ANONYMOUS, /* not glibc's malloc's */
	PART_STACKS,
	PART_FILES,
	PART_SHARED,
	PART_SPECIAL,
	HOLD_PARTS,
};

const char *hold_part_name(enum hold_part part);

struct hold_sum {
	uint64_t parts[HOLD_PARTS];
	uint64_t rss;
	uint64_t pss;
	uint64_t swap;
	uint64_t page_tables;
	uint64_t processes;
	uint64_t arenas;
	uint64_t threads;
	uint64_t trim_top;  /* of PART_TRIM: by a lower program break */
	uint64_t huge_zero; /* of huge pages, in pages of zeros */
	uint64_t pin_size;  /* of the live chunks that pin most; 0: none */
	uint64_t pin_bytes;
	const char *pin_hint;	 /* what they begin with a pointer to, or "" */
	uint64_t trim_threshold; /* of the process with most trim_top */
	bool partial;
	const char *file;    /* the largest of PART_FILES; NULL: none */
	uint64_t file_bytes; /* resident of it, in the process where that is most */
	const char *other;   /* an allocator whose inside is not read; NULL: none */
	/* Of those that count themselves, and the one that keeps most of what is free. */
	uint64_t counted_active;
	uint64_t counted_free;
	uint64_t counted_most;
	bool purges;		     /* jemalloc has threads of its own that give pages back */
	enum allocator_kind counted; /* ALLOCATOR_UNKNOWN: none does */
};

/*
 * Add a process. shared: pages that several processes share count with their part in each (Pss),
 * so that those of several processes count once.
 */
void hold_sum_add(struct hold_sum *sum, const struct hold_process *process, bool shared);

/* The part that is largest. */
enum hold_part hold_sum_most(const struct hold_sum *sum);

/* One sentence. Freed by the caller. */
char *hold_sentence(const struct hold_sum *sum);

struct hold_advice {
	const char *code;
	uint64_t bytes; /* at most so many would be freed */
	char *text;
};

/* Array of struct hold_advice, most bytes first. */
GArray *hold_advise(const struct hold_sum *sum);

#endif /* MEMTOLL_HOLD_VERDICT_H */
