/* SPDX-License-Identifier: GPL-2.0 */
/*
 * python_code.h: code objects of another process's interpreter: function, file, lines; of Ruby its
 * instruction sequences, of PHP its functions. They may be changed or freed while they are read:
 * sizes are bounded, and what does not look like a code object is rejected.
 */
#ifndef MEMTOLL_PYTHON_CODE_H
#define MEMTOLL_PYTHON_CODE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "python/python_offsets.h"

/* Longer names are cut, longer tables left out. */
#define PYTHON_TEXT_MAX 4096
#define PYTHON_LINES_MAX (1024 * 1024)

/* Distinguishes code objects that successively had the same address. */
struct python_code_key {
	uint64_t type;
	uint64_t size; /* number of instructions; 0 before 3.11. Ruby: of their words */
	uint64_t file; /* addresses of the objects */
	uint64_t name;
	uint64_t lines;
	uint64_t first_line;
	uint64_t body;	/* Ruby: the rest of the object. PHP: the class */
	uint64_t start; /* Ruby, PHP: address of the first instruction */
};

/* From an instruction on, in bytes from the first one, code is of this line. */
struct python_run {
	uint32_t from;
	uint32_t line;
};

struct python_code {
	struct python_code_key key;
	uint32_t kind;	  /* enum memtoll_python_kind */
	uint16_t version; /* of the interpreter: selects the format of lines */
	bool free_threaded;
	bool partial; /* a part that is there was not to be read just now */
	uint32_t first_line;
	char *function; /* UTF-8, control characters replaced */
	char *file;
	uint8_t *lines; /* the line table as it is */
	size_t line_bytes;
	GArray *runs; /* Ruby, PHP: struct python_run, in order; NULL: unreadable */
	unsigned int references;
};

/*
 * Read the keys of the code objects at some addresses, all at once: a stack has dozens. *type:
 * address of the type `code`, found with the first one (0 until then). Addresses of 0 are skipped.
 * keys[i].type is 0: not a code object (any more), or unreadable.
 */
#define PYTHON_CODES_MAX MEMTOLL_PYTHON_DEPTH
void python_code_peek(pid_t pid, const struct python_layout *layout, uint64_t *type,
		      const uint64_t *addresses, size_t count, struct python_code_key *keys);

/*
 * Read the rest. NULL where it cannot be read; *partial, if not NULL: it may be the next time, as
 * may what is missing of the code. The caller has the first reference; dropping the last one frees.
 * The count is not atomic.
 */
struct python_code *python_code_read(pid_t pid, const struct python_layout *layout,
				     const struct python_code_key *key, bool *partial);
struct python_code *python_code_ref(struct python_code *code);
void python_code_unref(struct python_code *code);

/*
 * Code of the interpreter itself, without source: runs after an inlined __init__ (_Py_InitCleanup,
 * 3.13).
 */
bool python_code_is_internal(const struct python_code *code);

/* Whether an instruction is in this code; if not, another object has the address now. */
bool python_code_has(const struct python_code *code, int32_t instruction);

/*
 * The line of an instruction, as struct memtoll_python has it; the first line of the function where
 * the table has none. Sources: Objects/lnotab_notes.txt (3.9, 3.10),
 * Objects/locations.md (3.11 and later).
 */
uint32_t python_code_line(const struct python_code *code, int32_t instruction);

#endif /* MEMTOLL_PYTHON_CODE_H */
