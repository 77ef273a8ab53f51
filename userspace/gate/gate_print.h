/* SPDX-License-Identifier: GPL-2.0 */
/* gate_print.h: what a gate found, as text or JSON. */
#ifndef MEMTOLL_GATE_PRINT_H
#define MEMTOLL_GATE_PRINT_H

#include <glib.h>
#include <stdio.h>

#include "gate/verdict.h"

struct gate_subject {
	const struct bounds *budget;
	const GPtrArray *before, *now; /* struct counts */
	const char *command;	       /* that was run; NULL: recordings were read */
	const char *against;	       /* likewise */
};

/* "over", "unsure", "within". */
const char *gate_result_name(enum gate_result result);

/* "10.0 MiB", "1,234", "20.0 ms"; "-" where it is not known. */
void gate_format(char *text, size_t size, enum gate_metric metric, double value);

void gate_print_text(const struct gate_subject *subject, const struct verdict *verdict);

/* The object that userspace/doc/gate.md describes. 0, or -ENOMEM after one message. */
int gate_print_json(const struct gate_subject *subject, const struct verdict *verdict);

#endif /* MEMTOLL_GATE_PRINT_H */
