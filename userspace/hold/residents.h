/* SPDX-License-Identifier: GPL-2.0 */
/*
 * residents.h: all that is resident of a process, by what it is: /proc/PID/smaps. It is the process
 * that chooses mappings, files and threads: their numbers are bounded.
 */
#ifndef MEMTOLL_RESIDENTS_H
#define MEMTOLL_RESIDENTS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "hold/mapped_chunks.h"
#include "hold/thread_stacks.h"

#define RESIDENT_FILES_MAX 4096U /* told apart; the others are one */

enum resident_kind {
	RESIDENT_MALLOC, /* heaps and mapped blocks of glibc's allocator */
	RESIDENT_STACKS,
	RESIDENT_FILES,
	RESIDENT_SHARED,
	RESIDENT_ANONYMOUS, /* any other */
	RESIDENT_SPECIAL,   /* the kernel's: [vdso] */
	RESIDENT_KINDS,
};

const char *resident_kind_name(enum resident_kind kind);

struct resident_sum {
	uint64_t mappings;
	uint64_t rss;
	uint64_t pss;
	uint64_t swap;
	uint64_t swap_pss;
	uint64_t dirty;	    /* private and written to */
	uint64_t anonymous; /* of no file, or a private copy of a page of one */
	uint64_t huge;	    /* in huge pages, of anonymous memory */
};

struct resident_file {
	char *path;
	enum resident_kind kind; /* of files, or of what is shared memory by its name */
	struct resident_sum sum;
};

struct resident_stack {
	struct thread_stack thread;
	struct resident_sum sum;
};

struct residents {
	struct resident_sum sums[RESIDENT_KINDS];
	GArray *files;	/* of struct resident_file, most resident first */
	GArray *stacks; /* of struct resident_stack, the same */
	uint64_t threads;
	uint64_t page_tables;
	bool heap_stacks; /* stacks are in a heap, and not told from it */
	/* What the kernel says of the whole (smaps_rollup). */
	struct resident_sum whole;
};

/* What is known of a process before its mappings are summed. */
struct residents_known {
	const GArray *owned;  /* of struct owned_range, ascending: what is an allocator's */
	const GArray *stacks; /* of struct thread_stack */
	uint64_t threads;
	bool heap_stacks; /* the runtime has its stacks on its heap (Go): no pointer says of a
			   * mapping that it is a stack */
};

/*
 * Sums that differ from the kernel's own by more
 * than one in a hundred are read again, three times at most. 0 or -errno.
 */
int residents_read(pid_t pid, const struct residents_known *known, struct residents *residents);
/* One file in smaps' format; for tests. */
void residents_parse(FILE *smaps, const GArray *owned, struct residents *residents);
void residents_init(struct residents *residents);
void residents_free(struct residents *residents);

/* All kinds together. */
struct resident_sum residents_sum(const struct residents *residents);
/* Whether that is the kernel's own figure within one in a hundred, or 64 KiB. */
bool residents_agree(const struct residents *residents);

#endif /* MEMTOLL_RESIDENTS_H */
