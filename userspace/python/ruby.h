/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ruby.h: Ruby's frames and code, for python_offsets.h and python_code.h: by a table for each
 * version, from the sources' vm_core.h, method.h and iseq.h.
 */
#ifndef MEMTOLL_RUBY_H
#define MEMTOLL_RUBY_H

#include "python/python_code.h"
#include "python/python_offsets.h"
#include "symbols/image.h"

/*
 * The interpreter in an image: *context is the symbol of each thread's own variable, in the table
 * with that section; version: the address of its name, in the process. 0, -ENOTSUP, or -errno of
 * reading the process's memory.
 */
int ruby_layout_find(pid_t pid, const struct image *image, uint64_t bias,
		     const struct python_symbols *symbols, struct python_layout *layout);

void ruby_code_peek(pid_t pid, const struct python_layout *layout, const uint64_t *addresses,
		    size_t count, struct python_code_key *keys);
/* Function and file of code whose key is known; NULL where they cannot be read. */
void ruby_code_name(pid_t pid, const struct python_layout *layout, struct python_code *code);
GArray *ruby_code_runs(pid_t pid, const struct python_layout *layout,
		       const struct python_code_key *key);
/* Whether there is such a byte in it, or it is the end. */
bool ruby_code_has(const struct python_code_key *key, uint32_t byte);
/* Of the word being executed: frames have the next one. */
uint32_t ruby_code_at(uint32_t next);

#endif /* MEMTOLL_RUBY_H */
