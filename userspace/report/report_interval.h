/* SPDX-License-Identifier: GPL-2.0 */
/* report_interval.h: a line for each interval of a recording that goes on. */
#ifndef MEMTOLL_REPORT_INTERVAL_H
#define MEMTOLL_REPORT_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "recording/interval.h"

/* Begins as { .out = ..., .json = ... }. */
struct interval_lines {
	FILE *out;
	bool json;	   /* an object a line, as interval.schema.json has it */
	uint64_t number;   /* of lines printed */
	uint64_t start_ns; /* of the first interval */
	int64_t clock_ns;  /* UTC less CLOCK_MONOTONIC, as of then */
};

/* As session_config.on_interval: context is a struct interval_lines. Flushed: others read it now. */
void interval_line(void *context, const struct interval *interval);

/* The JSON Schema of those objects. 0 or -errno. */
int interval_print_schema(FILE *out);

#endif /* MEMTOLL_REPORT_INTERVAL_H */
