/* SPDX-License-Identifier: GPL-2.0 */
/* allocator_kind.h: whose allocator a file holds, and its version: by symbols, notes, strings. */
#ifndef MEMTOLL_ALLOCATOR_KIND_H
#define MEMTOLL_ALLOCATOR_KIND_H

#include "allocators/modules.h"
#include "symbols/image.h"

/* The allocator that alone defines this symbol; ALLOCATOR_UNKNOWN: any may. */
enum allocator_kind allocator_kind_of_symbol(const char *name);

/*
 * Does an allocator define this symbol under a prefix of the builder's choice ("je_", "_rjem_")
 * or of its own ("mi_")? Then the prefix and whose it is.
 */
bool allocator_prefix(const char *name, char *prefix, size_t size, enum allocator_kind *kind);

bool allocator_is_musl(const struct image *image, const char *path);

/* Fill in the module's kind, where its symbols have not told, and its version. */
void allocator_recognise(const struct image *image, const char *path,
			 struct allocator_module *module);

#endif /* MEMTOLL_ALLOCATOR_KIND_H */
