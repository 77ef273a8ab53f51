/* SPDX-License-Identifier: GPL-2.0 */
/*
 * java.h: frames and methods of HotSpot's interpreter (OpenJDK), for python_offsets.h and
 * python_code.h: by what it exports for the serviceability agent (gHotSpotVM*, vmStructs.hpp).
 */
#ifndef MEMTOLL_JAVA_H
#define MEMTOLL_JAVA_H

#include "python/python_code.h"
#include "python/python_offsets.h"
#include "symbols/image.h"

/* Note one of gHotSpotVM*. */
void java_note_symbol(const struct symbol *symbol, struct python_symbols *found);
bool java_is_there(const struct python_symbols *symbols);

/*
 * The virtual machine of a process. 0; -ENOTSUP: of another release, or one that does not say enough;
 * or -errno of reading the process's memory.
 */
int java_layout_find(pid_t pid, uint64_t bias, const struct python_symbols *symbols,
		     struct python_layout *layout);

void java_code_peek(pid_t pid, const struct python_layout *layout, const uint64_t *addresses,
		    size_t count, struct python_code_key *keys);
/* Function, file and lines of a method whose key is known; NULL where they cannot be read. */
void java_code_name(pid_t pid, const struct python_layout *layout, struct python_code *code);

#endif /* MEMTOLL_JAVA_H */
