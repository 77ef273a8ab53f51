/* SPDX-License-Identifier: GPL-2.0 */
/*
 * top_snapshot.h: what one interval looked like, of a target or of the machine: tables of processes
 * and of details (sites; or who pushed out whose pages), and what is always in sight. Whoever gathers
 * makes it, whoever shows it knows nothing of where it came from.
 */
#ifndef MEMTOLL_TOP_SNAPSHOT_H
#define MEMTOLL_TOP_SNAPSHOT_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_VALUES 10

enum top_unit {
	TOP_COUNT,
	TOP_BYTES,
	TOP_TIME, /* ns */
	TOP_PART, /* ns, shown as a part of the interval: 100 % is one processor */
};

struct top_column {
	const char *title;
	const char *key; /* in JSON */
	enum top_unit unit;
};

struct top_columns {
	const char *name; /* of the table, in JSON */
	const char *label, *label_key;
	const char *text; /* title */
	const char *text_keys[2];
	size_t count;
	struct top_column columns[TOP_VALUES];
};

struct top_row {
	int64_t pid;   /* 0: of none */
	char *label;   /* a process's name, a site's toll, who pushes */
	char *text[2]; /* where allocated and touched; whose pages. [1] NULL: as [0] */
	double values[TOP_VALUES];
};

struct top_table {
	const struct top_columns *columns;
	GPtrArray *rows; /* struct top_row */
};

/* What is followed over time: a toll's part of what was observed, or a rate. */
struct top_measure {
	const char *name; /* lives as long as memtoll, as the next */
	const char *family;
	double time_ns; /* a toll's */
	double value;	/* what is drawn: a share, or an amount a second */
	bool is_share;
};

struct top_loss {
	const char *name; /* lives as long as memtoll */
	uint64_t count;
	bool exceeds;
};

struct top_snapshot {
	const char *kind;     /* "target" or "machine" */
	char *target;	      /* in words; printable, as the sentence is */
	uint64_t elapsed_ns;  /* since the start, at its end */
	uint64_t interval_ns; /* its length */
	double observed_ns;   /* of a target */
	double overhead;      /* part of the target's time, or of the machine's */
	double limit;	      /* of that; 0: none */
	bool estimated;	      /* not all was watched: the counts are scaled */
	bool recorded;	      /* in a file that is kept: a mark goes there */
	char *sentence;	      /* a verdict so far, where the model is not to make one of measures */
	GArray *measures;     /* struct top_measure */
	GArray *losses;	      /* struct top_loss */
	struct top_table processes;
	struct top_table details;
};

struct top_snapshot *top_snapshot_new(const char *kind, const struct top_columns *processes,
				      const struct top_columns *details);
void top_snapshot_free(struct top_snapshot *snapshot);

/* Texts are copied, and made printable. The row is the table's. */
struct top_row *top_row_add(struct top_table *table, int64_t pid, const char *label,
			    const char *first, const char *second);
void top_row_free(gpointer row);

#endif /* MEMTOLL_TOP_SNAPSHOT_H */
