/* SPDX-License-Identifier: GPL-2.0 */
/*
 * slow_path.h: where in glibc's code an allocation goes that the thread's cache does not answer.
 *
 * malloc, calloc, realloc and the aligned ones hand such a call to one routine, with an arena and
 * the size (_int_malloc); free hands the block to another, with the arena and the chunk, or to the
 * one that unmaps it. A probe at those calls never meets the fast path, and the kernel emulates
 * call and jmp. Their symbols are not in a stripped library, so they are found by what the code
 * does with its arguments (code_flow.h). What is not proved is not found, with the reason.
 */
#ifndef MEMTOLL_SLOW_PATH_H
#define MEMTOLL_SLOW_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/functions.h"

#define SLOW_SITES_MAX 8
#define SLOW_OTHERS_MAX 24

/* The file's code, its own addresses, and what is exported. */
struct slow_library {
	const uint8_t *bytes;
	size_t len;
	uint64_t address;	       /* of the first byte */
	uint64_t data_start, data_end; /* writable data, where the main arena is */
	uint64_t functions[FN_COUNT];  /* by enum memtoll_fn; 0: not exported */
	uint64_t munmap;
	/* Extent of the function at an address; false: there is none. */
	bool (*extent)(uint64_t address, uint64_t *start, uint64_t *end, void *argument);
	void *argument;
};

/* What the register has at a place. */
enum slow_value {
	SLOW_SIZE,   /* the bytes asked for */
	SLOW_PADDED, /* the same in whole chunks, or with room for an alignment */
	SLOW_CHUNK,  /* the block's address less 16 */
	SLOW_BLOCK,  /* that address */
};

struct slow_site {
	uint64_t address;
	bool inside;	/* the function itself, not one that it calls or jumps to */
	uint32_t depth; /* bytes that the stack pointer is below its value at the entry */
	int8_t number;	/* of the register, in the numbering of instructions */
	enum slow_value value;
	bool again;  /* a second try, behind another of the sites: the same call a second time */
	bool mapped; /* blocks that have a mapping of their own */
	bool main_arena; /* of a program with one thread: certainly in the main arena */
	bool is_call;
	bool has_rbp;	 /* the rbp of the function's caller is known: */
	int32_t rbp;	 /* bytes from the return address; 0: in its register */
	uint64_t target; /* of a call, or a jump out of the function; 0: of none */
	/*
	 * In a function that others call, too: bytes from the stack pointer to where that returns
	 * to, and where this is after a call; 0: it is reached by a jump.
	 */
	bool shared;
	uint32_t returns_at;
	uint64_t returns_to;
	char instruction[16]; /* "call", "jnb" */
};

/* Code by its addresses: [start, end). */
struct slow_code {
	uint64_t start, end;
};

struct slow_path {
	bool found;
	/* The function itself, and what alone it goes on in: who returns there is inside its call. */
	size_t code_count;
	struct slow_code code[SLOW_SITES_MAX + 1];
	/* Some way that meets no site returns a block or takes one back; false: none is known. */
	bool bypassed;
	size_t site_count;
	struct slow_site sites[SLOW_SITES_MAX];
	char refusal[112];
};

struct slow_paths {
	uint64_t routine; /* allocates; 0: not found */
	uint64_t release; /* takes back */
	uint64_t arena;	  /* the main one */
	uint64_t shift;	  /* from an address to an offset in the file; of slow_paths_read() */
	/* Where calls of release return to, of a free that jumps there. */
	size_t other_count;
	uint64_t others[SLOW_OTHERS_MAX];
	uint64_t entries[FN_COUNT]; /* of the functions; 0: not exported */
	struct slow_path functions[FN_COUNT];
};

void slow_paths_find(const struct slow_library *library, struct slow_paths *paths);

struct image;

/* The same for a file that defines malloc. Its code is read as it is now. */
void slow_paths_read(const struct image *image, struct slow_paths *paths);
/* And for a file that is open and mapped in a process; false: it cannot be read. */
bool slow_paths_open(pid_t pid, int fd, struct slow_paths *paths);
/* Whether a symbol is the function of that number; valloc, counted as malloc, is not. */
bool slow_path_is_of(enum memtoll_fn fn, const char *symbol);

const char *slow_value_name(enum slow_value value);

#endif /* MEMTOLL_SLOW_PATH_H */
