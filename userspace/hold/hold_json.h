/* SPDX-License-Identifier: GPL-2.0 */
/* hold_json.h: who holds the memory, as an object (hold.schema.json). */
#ifndef MEMTOLL_HOLD_JSON_H
#define MEMTOLL_HOLD_JSON_H

#include <stdio.h>

#include "hold/hold.h"

/* processes: of struct hold_process *. ended: those that ended before they were looked at. */
void hold_json(FILE *out, const GPtrArray *processes, unsigned int ended);

void hold_json_schema(FILE *out);

#endif /* MEMTOLL_HOLD_JSON_H */
