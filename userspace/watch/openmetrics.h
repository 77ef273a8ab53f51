/* SPDX-License-Identifier: GPL-2.0 */
/* openmetrics.h: the metrics as OpenMetrics text (openmetrics.io, version 1.0). */
#ifndef MEMTOLL_OPENMETRICS_H
#define MEMTOLL_OPENMETRICS_H

#include <glib.h>

struct metrics;

#define OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Freed by the caller. */
GString *openmetrics_text(const struct metrics *metrics);

/* Replace the file at once: whoever reads it has the old or the new one. 0 or -errno. */
int openmetrics_file(const char *path, const GString *text);

#endif /* MEMTOLL_OPENMETRICS_H */
