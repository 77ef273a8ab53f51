/* SPDX-License-Identifier: GPL-2.0 */
/*
 * top_model.h: what is looked at, and how: the last snapshot or the sums since the start, sorted and
 * filtered, one process of it chosen, held still while paused; and the measures over time. Knows no
 * terminal.
 */
#ifndef MEMTOLL_TOP_MODEL_H
#define MEMTOLL_TOP_MODEL_H

#include "top/top_snapshot.h"

#define TOP_HISTORY 60
/*
 * Of sums since the start there are twice as many rows as at the moment, within these bounds; the
 * least leave for others. So memory is what it will be after a minute, not after hours.
 */
#define TOP_ROWS_LEAST 512
#define TOP_ROWS_MOST 2048
#define TOP_INPUT 64

struct top_history {
	struct top_measure measure; /* its last */
	double values[TOP_HISTORY]; /* the last of count is the newest */
	size_t count;
	double time_ns; /* so far */
	double most;	/* of values */
};

enum top_prompt { TOP_NO_PROMPT, TOP_FILTER, TOP_MARK };

struct top_model {
	struct top_snapshot *last;  /* NULL: none yet */
	struct top_snapshot *shown; /* the last, or the one it was paused at */
	struct top_snapshot *total; /* tables are sums since the start */
	GHashTable *sums;	    /* keys of rows -> rows of total */
	GArray *history;	    /* struct top_history */
	double observed_ns;	    /* so far */
	bool paused;
	bool totals;
	bool help;
	bool ended;
	bool quit;
	bool backward; /* the least first */
	unsigned int owner;
	unsigned int sort;     /* a column of processes; one more: by name */
	unsigned int chosen;   /* place in the list; follows chosen_pid */
	int64_t chosen_pid;    /* 0: whoever is first */
	unsigned int scrolled; /* lines of details above the first that is seen */
	enum top_prompt prompt;
	char input[TOP_INPUT * 4]; /* of the prompt */
	char *filter;		   /* NULL: none */
	char *said;		   /* a line at the bottom */
	GPtrArray *marks; /* notes that are to be recorded: char *, taken by whoever does */
};

struct top_model *top_model_new(void);
void top_model_free(struct top_model *model);

/* Takes the snapshot. */
void top_model_take(struct top_model *model, struct top_snapshot *snapshot);

/* A line for the bottom of the screen; NULL: none any more. */
void top_model_say(struct top_model *model, const char *text);

/* Rows as they are to be shown: an array of struct top_row *, freed by the caller. */
GPtrArray *top_model_processes(const struct top_model *model);
/* Those of the chosen process; where details are of none: all. */
GPtrArray *top_model_details(const struct top_model *model);

/* The length of time that the rows are of. */
uint64_t top_model_time(const struct top_model *model);

/* The process that is chosen; NULL: none is there. */
const struct top_row *top_model_chosen(const struct top_model *model);
void top_model_choose(struct top_model *model, int by);
void top_model_sort_next(struct top_model *model, int by);
void top_model_pause(struct top_model *model);

/* "zeroing dominates, 75 %": the verdict so far. Freed by the caller. */
char *top_model_verdict(const struct top_model *model);
/* Of that: the family and its share; NULL: nothing was observed yet. */
const char *top_model_family(const struct top_model *model, double *share);

#endif /* MEMTOLL_TOP_MODEL_H */
