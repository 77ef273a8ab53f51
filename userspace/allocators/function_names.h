/* SPDX-License-Identifier: GPL-2.0 */
/* function_names.h: the names under which allocators define the functions of the malloc family. */
#ifndef MEMTOLL_FUNCTION_NAMES_H
#define MEMTOLL_FUNCTION_NAMES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire/events.h"

/*
 * A function of the family. Several count as one: C++'s operators new as malloc, those named delete
 * as free. tcmalloc, jemalloc and mimalloc serve them by a path of their own that does not come by
 * malloc.
 */
struct family_function {
	const char *name;
	enum memtoll_fn fn;
	uint32_t arguments;	/* PLACEMENT_* that the probe reads */
	bool is_operator;	/* of C++ */
};

/* In order of importance: of names that share an address the first one counts. */
extern const struct family_function family_functions[];
extern const size_t family_count;

#define FAMILY_MAX 64

#endif /* MEMTOLL_FUNCTION_NAMES_H */
