/* SPDX-License-Identifier: GPL-2.0 */
/* top_figures.h: values as text, short enough for a column. */
#ifndef MEMTOLL_TOP_FIGURES_H
#define MEMTOLL_TOP_FIGURES_H

#include "top/top_snapshot.h"

#define TOP_FIGURE 16

/* "-" for nothing. time_ns: what a part is of. */
void top_figure(char text[TOP_FIGURE], enum top_unit unit, double value, uint64_t time_ns);

/* "61 %", or an amount a second. */
void top_measure_figure(char text[TOP_FIGURE], const struct top_measure *measure);

/* The last values, a character each, against the most of them or, of shares, against all. */
char *top_sparkline(const double *values, size_t count, double most, bool ascii);

#endif /* MEMTOLL_TOP_FIGURES_H */
