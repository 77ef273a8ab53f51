/* SPDX-License-Identifier: GPL-2.0 */
/* json_lines.h: the last interval as one JSON object a line. */
#ifndef MEMTOLL_JSON_LINES_H
#define MEMTOLL_JSON_LINES_H

#include <stdio.h>

struct metrics;

/* recording: the name of the one that has it. 0 or -errno. */
int json_line(FILE *out, const struct metrics *metrics, const char *recording);

#endif /* MEMTOLL_JSON_LINES_H */
