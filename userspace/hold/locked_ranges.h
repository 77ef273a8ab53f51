/* SPDX-License-Identifier: GPL-2.0 */
/*
 * locked_ranges.h: memory that mlock(2) or mlockall(2) has locked: madvise(MADV_DONTNEED), by which
 * malloc_trim(0) gives pages back, refuses it.
 */
#ifndef MEMTOLL_LOCKED_RANGES_H
#define MEMTOLL_LOCKED_RANGES_H

#include <glib.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct locked_range {
	uint64_t start;
	uint64_t end;
};

/* Array of struct locked_range, ascending; empty where none are, or it cannot be read. */
GArray *locked_ranges_read(pid_t pid);
/* One file in smaps' format; for tests. */
GArray *locked_ranges_parse(FILE *smaps);

/* Where the first locked byte of [start, end) is; end: nowhere. ranges may be NULL. */
uint64_t locked_ranges_first(const GArray *ranges, uint64_t start, uint64_t end);

#endif /* MEMTOLL_LOCKED_RANGES_H */
