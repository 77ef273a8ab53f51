/* SPDX-License-Identifier: GPL-2.0 */
/* hold_text.h: who holds the memory, on a screen. */
#ifndef MEMTOLL_HOLD_TEXT_H
#define MEMTOLL_HOLD_TEXT_H

#include <stdio.h>

#include "hold/hold.h"

/* processes: of struct hold_process *; one, or several and their sum. title: what they are. */
void hold_text(FILE *out, const char *title, const GPtrArray *processes,
	       const struct hold_missing *missing);

#endif /* MEMTOLL_HOLD_TEXT_H */
