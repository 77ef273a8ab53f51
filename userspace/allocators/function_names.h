/* SPDX-License-Identifier: GPL-2.0 */
/* function_names.h: names of the malloc family's functions in the various allocators. */
#ifndef MEMTOLL_FUNCTION_NAMES_H
#define MEMTOLL_FUNCTION_NAMES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire/functions.h"

/*
 * A function of the family. Several names may have the same fn: C++'s operators new count as
 * malloc, delete as free. In tcmalloc, jemalloc and mimalloc they do not call malloc and free.
 */
struct family_function {
	const char *name;
	enum memtoll_fn fn;
	uint32_t arguments; /* PLACEMENT_* that the probe reads */
	bool is_operator;   /* of C++ */
};

/* In order of importance: of several names of an address the first one is used. */
extern const struct family_function family_functions[];
extern const size_t family_count;

#define FAMILY_MAX 64

#endif /* MEMTOLL_FUNCTION_NAMES_H */
