/* SPDX-License-Identifier: GPL-2.0 */
/* bounds_write.h: a budget from what runs of the same program counted. */
#ifndef MEMTOLL_BOUNDS_WRITE_H
#define MEMTOLL_BOUNDS_WRITE_H

#include <glib.h>
#include <stdio.h>

#include "gate/bounds.h"

/*
 * runs: struct counts of the bounds of `usual` (bounds_usual()). A count that was the same in all
 * runs is bounded by itself and next to nothing where the program decides it; one that varies by the
 * most that was seen, and as much again as it varied. What was in doubt, or not captured, gets no bound, and a
 * comment that says so. command: that was run; NULL: of recordings. 0 or -errno of out.
 */
int bounds_write(FILE *out, const struct bounds *usual, const GPtrArray *runs, const char *command);

#endif /* MEMTOLL_BOUNDS_WRITE_H */
