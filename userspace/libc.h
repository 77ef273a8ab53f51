/* SPDX-License-Identifier: GPL-2.0 */
/* libc.h: which allocator a process maps, and where its functions and its memset are. */
#ifndef MEMTOLL_LIBC_H
#define MEMTOLL_LIBC_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../bpf/events.h"
#include "placement.h"
#include "proc.h"

enum allocator_kind {
	ALLOCATOR_UNKNOWN = 0,	/* exports malloc or calloc, recognised as none of the others */
	ALLOCATOR_GLIBC = 1,
	ALLOCATOR_MUSL = 2,
	ALLOCATOR_JEMALLOC = 3,
	ALLOCATOR_TCMALLOC = 4,
	ALLOCATOR_MIMALLOC = 5,
};

const char *allocator_kind_name(enum allocator_kind kind);

struct probe_point {
	enum memtoll_fn fn;
	uint64_t symbol_offset;		/* file offset of the function */
	struct placement place;		/* place.found == false: not probed, with the reason */
	bool product;			/* at the place, rax holds the size asked (reallocarray) */
};

/* One mapped file that defines functions of the malloc family. */
struct allocator_module {
	char *path;			/* as in the process's maps */
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	int fd;				/* open for reading; attached by /proc/self/fd/N */
	enum allocator_kind kind;
	char version[32];		/* "2.36", or "" */
	struct probe_point points[FN_COUNT];	/* each address once: aliases share a point */
	size_t point_count;
};

/*
 * Find every module of the process that defines malloc-family functions in its dynamic symbol
 * table, or in .symtab where it is the statically linked main program. The dynamic loader's own
 * minimal malloc does not count. 0 and an array (count may be 0), or -errno. Freed by
 * allocator_modules_free().
 */
int allocator_modules_find(pid_t pid, const struct maps *maps, struct allocator_module **modules,
			   size_t *count);
void allocator_modules_free(struct allocator_module *modules, size_t count);

/* An address range of the process's code: [start, end). */
struct code_range {
	uint64_t start;
	uint64_t end;
};

/*
 * The code that memset and bzero really run in this process, as addresses. In glibc memset is an
 * IFUNC: the implementation is read from the process's own relocated slots (R_X86_64_IRELATIVE,
 * R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT), its extent from .eh_frame. Needs no debug symbols.
 * Number of ranges written to ranges (at most capacity), or -errno.
 */
ssize_t memset_ranges(pid_t pid, const struct maps *maps, struct code_range *ranges,
		      size_t capacity);

#endif /* MEMTOLL_LIBC_H */
