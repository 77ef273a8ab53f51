/* SPDX-License-Identifier: GPL-2.0 */
/* hold_json.h: who holds the memory, as an object (hold.schema.json). */
#ifndef MEMTOLL_HOLD_JSON_H
#define MEMTOLL_HOLD_JSON_H

#include <stdio.h>

#include "hold/hold.h"

/*
 * processes: of struct hold_process *. blocks: of those that pin so many at most are told one by
 * one, of all processes together.
 */
void hold_json(FILE *out, const GPtrArray *processes, const struct hold_missing *missing,
	       guint blocks);

void hold_json_schema(FILE *out);

#endif /* MEMTOLL_HOLD_JSON_H */
