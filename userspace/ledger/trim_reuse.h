/* SPDX-License-Identifier: GPL-2.0 */
/*
 * trim_reuse.h: of pages that malloc_trim(0) would have given back at some time, how many blocks
 * have taken since: each of them would have been faulted in again. Pure; no I/O, no clock.
 */
#ifndef MEMTOLL_TRIM_REUSE_H
#define MEMTOLL_TRIM_REUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/records.h"

/* Whole pages of the heap that are free; ascending in an array of them. */
struct free_range {
	uint64_t start;
	uint64_t end;
	bool resident;
};

struct trim_reuse;

struct trim_reuse *trim_reuse_new(void);
void trim_reuse_free(struct trim_reuse *reuse);

/* What is free and resident now is what would be given back; what was there before is forgotten. */
void trim_reuse_begin(struct trim_reuse *reuse, pid_t pid, uint64_t now_ns,
		      const struct free_range *ranges, size_t count);
/* All that is free now: what is not has been taken, by blocks that nobody saw made. */
void trim_reuse_look(struct trim_reuse *reuse, pid_t pid, const struct free_range *ranges,
		     size_t count);
/* A block was made. */
void trim_reuse_block(struct trim_reuse *reuse, const struct memtoll_block *block);
/* The process's memory is gone: exec, exit. */
void trim_reuse_forget(struct trim_reuse *reuse, pid_t pid);

struct trim_reused {
	uint64_t since_ns; /* the time of trim_reuse_begin() */
	uint64_t pages;
	uint64_t used; /* of them, once or more */
};

/* False: it did not begin. */
bool trim_reuse_get(const struct trim_reuse *reuse, pid_t pid, struct trim_reused *reused);

#endif /* MEMTOLL_TRIM_REUSE_H */
