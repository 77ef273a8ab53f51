/* SPDX-License-Identifier: GPL-2.0 */
/* hold.h: who holds a process's memory: its allocator, inside and out, and everything else. */
#ifndef MEMTOLL_HOLD_H
#define MEMTOLL_HOLD_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#include "allocators/modules.h"
#include "hold/allocator_counters.h"
#include "hold/heap_sum.h"
#include "hold/huge_use.h"
#include "hold/malloc_state.h"
#include "hold/mapped_chunks.h"
#include "hold/residents.h"

/* An allocator that the process maps. */
struct hold_allocator {
	enum allocator_kind kind;
	char version[32];
	char *path;
	const char *unknown;		    /* why its inside is not known; NULL: it is */
	struct allocator_counters counters; /* of others than glibc's */
};

struct hold_process {
	pid_t pid;
	char name[64];
	GArray *allocators; /* of struct hold_allocator */
	/* Of glibc's; nothing where has_heaps is false. */
	bool has_heaps;
	struct malloc_numbers numbers;
	struct heap_sum heaps;
	uint64_t lost_heaps;
	struct mapped_chunks mapped;
	struct residents residents;
	struct huge_use huge; /* of those of residents that are huge pages */
	uint64_t walk_ns;
};

/* Of several processes, those that are in no sum. */
struct hold_missing {
	unsigned int ended;  /* before they were looked at */
	unsigned int unread; /* that are there, and could not be */
};

/*
 * Look at a process, which goes on meanwhile. 0, or -errno: -ESRCH: it is gone; -ENOEXEC: a program
 * of 32 bits. Freed also after an error.
 */
int hold_read(pid_t pid, bool read_swapped, struct hold_process *process);
void hold_free(struct hold_process *process);

/* Bytes of the heaps of which it is not known what they are, and of all heaps. */
uint64_t hold_unknown(const struct hold_process *process);
uint64_t hold_heap_bytes(const struct hold_process *process);
/* More than one byte in a hundred of the heaps is not known, or a whole heap, or one is corrupt. */
bool hold_is_partial(const struct hold_process *process);

#endif /* MEMTOLL_HOLD_H */
