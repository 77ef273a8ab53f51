/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMTOLL_PASSES_H
#define MEMTOLL_PASSES_H

#include <stdlib.h>

typedef void *alloc_fn(size_t count, size_t size);
typedef void *made_fn(size_t count, size_t size, alloc_fn *next);

/* Calls calloc. */
alloc_fn pass_on;

/* Has the code call calloc. */
void *call_back(made_fn *made, size_t count, size_t size);

#endif /* MEMTOLL_PASSES_H */
