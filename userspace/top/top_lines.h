/* SPDX-License-Identifier: GPL-2.0 */
/* top_lines.h: snapshots as lines of text, or an object a line (top.schema.json). */
#ifndef MEMTOLL_TOP_LINES_H
#define MEMTOLL_TOP_LINES_H

#include <stdio.h>

#include "top/top_model.h"

/* The model's last snapshot: a line for it, one for each process, and of details. */
void top_lines_text(FILE *out, const struct top_model *model);
void top_lines_json(FILE *out, const struct top_model *model);

/* 0 or -EIO. */
int top_lines_schema(FILE *out);

#endif /* MEMTOLL_TOP_LINES_H */
