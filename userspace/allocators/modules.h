/* SPDX-License-Identifier: GPL-2.0 */
/* modules.h: the allocators that a process maps, their functions, its memset and memcpy. */
#ifndef MEMTOLL_MODULES_H
#define MEMTOLL_MODULES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "allocators/function_names.h"
#include "allocators/placement.h"
#include "bpf/wire/functions.h"
#include "host/proc.h"

enum allocator_kind {
	ALLOCATOR_UNKNOWN = 0, /* exports malloc or calloc, recognised as none of the others */
	ALLOCATOR_GLIBC = 1,
	ALLOCATOR_MUSL = 2,
	ALLOCATOR_JEMALLOC = 3,
	ALLOCATOR_TCMALLOC = 4,
	ALLOCATOR_MIMALLOC = 5,
	ALLOCATOR_GO = 6, /* Go's runtime, which takes its memory by mmap */
};

const char *allocator_kind_name(enum allocator_kind kind);

/* How an allocator came into a process. */
enum allocator_linkage {
	LINKAGE_DYNAMIC = 0,   /* a shared library */
	LINKAGE_STATIC = 1,    /* part of a statically linked program */
	LINKAGE_EMBEDDED = 2,  /* part of a program, or of a library, beside the C library's own */
	LINKAGE_PRELOADED = 3, /* a library named in LD_PRELOAD */
};

const char *allocator_linkage_name(enum allocator_linkage linkage);

struct probe_point {
	enum memtoll_fn fn;
	char symbol[48];	/* its name: "malloc", "je_malloc", "_Znwm" */
	uint64_t symbol_offset; /* file offset of the function */
	struct placement place; /* place.found == false: not probed, with the reason */
	uint32_t arguments;	/* PLACEMENT_*: read at the place */
	bool product;		/* at the place, rax has the requested size (reallocarray) */
};

/* One mapped file that defines functions of the malloc family, or holds an allocator's code. */
struct allocator_module {
	char *path; /* as in the process's maps */
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	int fd;	       /* open for reading; attached by /proc/self/fd/N */
	uint64_t size; /* of the file, and its time, when places were chosen */
	struct timespec modified;
	enum allocator_kind kind;
	enum allocator_linkage linkage;	       /* a preloaded library is a dynamic one here */
	char version[32];		       /* "2.36", or "" */
	char soname[64];		       /* of a library, or "" */
	struct probe_point points[FAMILY_MAX]; /* each address once: aliases share a point */
	size_t point_count;		       /* 0: no symbols, so its functions are not known */
	size_t forwarded; /* functions left out: they only jump to a probed one */
};

/*
 * Find every module of the process that defines malloc-family functions in its dynamic symbol
 * table, in .symtab if it is a statically linked main program, or, under an allocator's prefix, in
 * either. A main program with an allocator's strings (or a static one, which must have an
 * allocator) but without such symbols is listed without points. The dynamic loader's own minimal
 * malloc does not count. 0 and an array (count may be 0), or -errno. Freed by
 * allocator_modules_free().
 */
int allocator_modules_find(pid_t pid, const struct maps *maps, struct allocator_module **modules,
			   size_t *count);
/*
 * Whether its file was overwritten since: places may now be in the middle of instructions, where a
 * breakpoint would break the program.
 */
bool allocator_module_is_rewritten(const struct allocator_module *module);
void allocator_modules_free(struct allocator_module *modules, size_t count);

/* How the module came into this process, considering LD_PRELOAD in its environment. */
enum allocator_linkage allocator_linkage(pid_t pid, const struct allocator_module *module);

/* An address range of the process's code: [start, end). */
struct code_range {
	uint64_t start;
	uint64_t end;
	bool copies; /* memcpy's or memmove's */
};

/*
 * The code that memset and bzero, memcpy and memmove really run in this process, as addresses. In
 * glibc they are IFUNCs: the implementation is read from the process's own relocated slots
 * (R_X86_64_IRELATIVE, R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT), its extent from .eh_frame. Needs no
 * debug symbols. Those of memset come first.
 * Number of ranges written to ranges (at most capacity), or -errno.
 */
ssize_t memory_code(pid_t pid, const struct maps *maps, struct code_range *ranges, size_t capacity);

#endif /* MEMTOLL_MODULES_H */
