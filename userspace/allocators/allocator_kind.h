/* SPDX-License-Identifier: GPL-2.0 */
/*
 * allocator_kind.h: which allocator a file contains, and its version: by symbols, notes, strings.
 */
#ifndef MEMTOLL_ALLOCATOR_KIND_H
#define MEMTOLL_ALLOCATOR_KIND_H

#include "allocators/modules.h"
#include "symbols/image.h"

/* The only allocator that defines this symbol; ALLOCATOR_UNKNOWN: any may. */
enum allocator_kind allocator_kind_of_symbol(const char *name);

/*
 * Whether the symbol shows an allocator built with a prefix, chosen by the builder ("je_",
 * "_rjem_") or fixed ("mi_"): the prefix and the allocator.
 */
bool allocator_prefix(const char *name, char *prefix, size_t size, enum allocator_kind *kind);

bool allocator_is_musl(const struct image *image, const char *path);

/* Set the module's kind, where it is not known by its symbols, and its version. */
void allocator_recognise(const struct image *image, const char *path,
			 struct allocator_module *module);

#endif /* MEMTOLL_ALLOCATOR_KIND_H */
