/* SPDX-License-Identifier: GPL-2.0 */
/* hold_json.h: who holds the memory, as an object (hold.schema.json). */
#ifndef MEMTOLL_HOLD_JSON_H
#define MEMTOLL_HOLD_JSON_H

#include <stdio.h>

#include "hold/hold.h"

/* processes: of struct hold_process *. */
void hold_json(FILE *out, const GPtrArray *processes, const struct hold_missing *missing);

void hold_json_schema(FILE *out);

#endif /* MEMTOLL_HOLD_JSON_H */
