/* SPDX-License-Identifier: GPL-2.0 */
/*
 * jit_name.h: what is in the name that a language's runtime gives compiled code in a perf map. Pure.
 *
 * V8 (src/logging/log.cc): "JS:*NAME FILE:LINE:COLUMN", the kind of code and how it was compiled
 * first, the name empty where the function has none. HotSpot (codeCache.cpp): "TYPE CLASS.NAME(TYPES)"
 * as external_name() has it.
 */
#ifndef MEMTOLL_JIT_NAME_H
#define MEMTOLL_JIT_NAME_H

#include <glib.h>
#include <stdint.h>

struct jit_name {
	GString *function;
	GString *file; /* "": not in it */
	uint32_t line; /* where the function begins; 0: not in it */
};

/* What is of no such form is the function's name as it is. */
void jit_name_split(const char *name, struct jit_name *into);

#endif /* MEMTOLL_JIT_NAME_H */
