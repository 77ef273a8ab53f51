/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pin_hints.h: what the blocks that pin may be, where nobody saw them made: objects of C++ begin
 * with a pointer to their class's vtable, and many of C with one to a table of functions.
 */
#ifndef MEMTOLL_PIN_HINTS_H
#define MEMTOLL_PIN_HINTS_H

#include <sys/types.h>

#include "hold/heap_sum.h"
#include "host/maps.h"

/* Sets the hints of pins and of ends: by what half of the blocks looked at begin with, or more. */
void pin_hints_find(pid_t pid, const struct memory_view *view, const struct maps *maps,
		    struct heap_sum *sum);

#endif /* MEMTOLL_PIN_HINTS_H */
