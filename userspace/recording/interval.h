/* SPDX-License-Identifier: GPL-2.0 */
/*
 * interval.h: what the last slices cost, while the recording goes on: the same views, over the rows
 * of those slices alone. So it takes as long at the end of a day as at its beginning.
 */
#ifndef MEMTOLL_INTERVAL_H
#define MEMTOLL_INTERVAL_H

#include <glib.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct interval_toll {
	const char *name;   /* lives as long as memtoll, as the next */
	const char *family; /* as in the verdict */
	bool captured;
	double time_ns;
	uint64_t count; /* faults, calls or samples */
	double share;	/* of what was observed */
};

struct interval_loss {
	const char *name; /* lives as long as memtoll */
	uint64_t count;
	bool exceeds; /* the limit of losses, in these slices */
};

struct interval {
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; end_ns 0: no slice has ended since */
	double observed_ns;
	double overhead_ns;
	double overhead; /* part of the target's time */
	GArray *tolls;	 /* struct interval_toll, in the order of the report */
	GArray *losses;	 /* struct interval_loss */
	/* Of those slices: tables in main, and views up to family as tables in temp. */
	sqlite3 *database;
	sqlite3 *recording;
};

/* Of one process. */
struct interval_process {
	pid_t pid;
	double observed_ns;
	double overhead_ns;
	int64_t rss_bytes; /* at the end; -1: unknown */
	int64_t swap_bytes;
};

struct interval_process_toll {
	pid_t pid;
	const char *name; /* lives as long as memtoll */
	double time_ns;
	double count;
	double bytes;
};

struct interval_reader;

/* NULL where there is no memory for it. */
struct interval_reader *interval_reader_new(void);
void interval_reader_free(struct interval_reader *reader);

/*
 * The slices that the recording, which is open for writing, has got since the last call. Lives
 * until the next call. NULL on failure: interval_reader_error() says why.
 */
const struct interval *interval_read(struct interval_reader *reader, sqlite3 *recording);
const char *interval_reader_error(const struct interval_reader *reader);

/*
 * The same by process: all that had time in the interval, and their tolls, "compute" among them.
 * Freed by the caller.
 */
GArray *interval_processes(const struct interval *interval);
GArray *interval_process_tolls(const struct interval *interval);

#endif /* MEMTOLL_INTERVAL_H */
