/* SPDX-License-Identifier: GPL-2.0 */
/*
 * v8.h: JavaScript's frames and functions in V8, for python_offsets.h and python_code.h: by what V8
 * says of itself for debuggers (v8dbg_*, from its tools/gen-postmortem-metadata.py).
 */
#ifndef MEMTOLL_V8_H
#define MEMTOLL_V8_H

#include "python/python_code.h"
#include "python/python_offsets.h"
#include "symbols/image.h"

void v8_note_symbol(const struct symbol *symbol, struct python_symbols *found);
bool v8_is_there(const struct python_symbols *symbols);

/* The engine in an image. 0; -ENOTSUP: it lacks a word; or -errno of reading the process's memory. */
int v8_layout_find(pid_t pid, uint64_t bias, const struct python_symbols *symbols,
		   struct python_layout *layout);

void v8_code_peek(pid_t pid, const struct python_layout *layout, const uint64_t *addresses,
		  size_t count, struct python_code_key *keys);
/*
 * Function, script and the line that the function begins in; NULL where they cannot be read, as of
 * functions of the engine's own. Lines within are known to V8 only once something has asked it.
 */
void v8_code_name(pid_t pid, const struct python_layout *layout, struct python_code *code);
/* Whether this may be the same function, of which only a part could be read before. */
bool v8_code_completes(const struct python_code *code, const struct python_code *partial);

#endif /* MEMTOLL_V8_H */
