/* SPDX-License-Identifier: GPL-2.0 */
/*
 * compare.h: figures of several runs without and with a change, and how sure their difference is.
 * Pure: no I/O. The same reckoning as memtoll.compare of the Python package makes of two
 * recordings.
 */
#ifndef MEMTOLL_COMPARE_H
#define MEMTOLL_COMPARE_H

#include <glib.h>
#include <stdbool.h>

enum compare_side { WITHOUT, WITH, SIDES };

enum compare_kind {
	COMPARE_TOTAL, /* all captured tolls together: the observed time */
	COMPARE_RUN,   /* of the runs that were not traced */
	COMPARE_TOLL,
	COMPARE_FAMILY,
};

enum compare_unit { COMPARE_SECONDS, COMPARE_COUNT, COMPARE_BYTES };

/* What is known of a figure's mean. */
struct estimate {
	double mean;	 /* NAN: not captured */
	double variance; /* of the mean; NAN: not known */
	double freedom;	 /* degrees of freedom; 0: not known */
};

struct difference {
	double value;	  /* with - without; of a ratio: with / without */
	double low, high; /* bounds; NAN: not known */
};

struct figure {
	enum compare_kind kind;
	enum compare_unit unit;
	char *name;
	char *family;	       /* of a toll; else NULL */
	GArray *values[SIDES]; /* double, one for each run */
	GArray *blocks[SIDES]; /* double, of a single run: one for each block of slices */
	double count[SIDES], bytes[SIDES]; /* of a toll: means over the runs */
	struct estimate estimate[SIDES];
	struct difference difference; /* 95 % */
	struct difference ratio;      /* with / without; 99 % */
};

struct comparison {
	GPtrArray *figures;	/* struct figure, in the order they were first named */
	GArray *block_s[SIDES]; /* double: seconds of each block, where there is one run */
};

struct comparison *comparison_new(void);
void comparison_free(struct comparison *comparison);

/* Find it, or append it. family may be NULL. */
struct figure *comparison_figure(struct comparison *comparison, enum compare_kind kind,
				 const char *name, const char *family, enum compare_unit unit);
struct figure *comparison_find(const struct comparison *comparison, enum compare_kind kind,
			       const char *name);

/*
 * Work out estimates and differences. Of several runs: their mean, and Welch's t interval from
 * their spread. Of one run: its value, and the same interval from how its blocks of slices vary
 * against its own rate (a ratio estimator, as blocks differ in length); fewer than two blocks: no
 * bounds. Ratios by Student's t over the logarithms: what disturbs a run makes it longer by a part
 * of itself, so that a side which takes a tenth of the time varies by a tenth as much. divisor:
 * what the values of one run were divided by, seconds of recording or 1, by side.
 */
void comparison_finish(struct comparison *comparison, const double divisor[SIDES]);

/* A side's mean over several runs, and its 99 % bounds, by the logarithms, as those of ratio. */
struct difference figure_bounds(const struct figure *figure, enum compare_side side);

/* 0 lies outside of the bounds; false where there are none. */
bool difference_proved(const struct difference *difference);
/* 1 lies outside of the bounds of a ratio. */
bool ratio_proved(const struct difference *ratio);

#endif /* MEMTOLL_COMPARE_H */
