/* SPDX-License-Identifier: GPL-2.0 */
/*
 * python_offsets.h: which CPython a file contains, and the layout of that version's frames and code
 * objects: by a table for 3.9 to 3.12, by the interpreter's own debug offsets for 3.13 and 3.14.
 * Ruby, PHP, V8 and HotSpot are found with it; the layout of their code is theirs alone (ruby.h and so on).
 */
#ifndef MEMTOLL_PYTHON_OFFSETS_H
#define MEMTOLL_PYTHON_OFFSETS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/python_offsets.h"
#include "host/proc.h"

/*
 * What V8 says of itself for debuggers, in the order of v8.c: offsets in objects and frames, types,
 * and how strings are kept.
 */
#define V8_CONSTANTS 32

/* What HotSpot says of itself for its own tools: where its tables are, and how their entries are made. */
enum java_symbol {
	JAVA_STRUCTS = 0,
	JAVA_STRUCT_BYTES,
	JAVA_STRUCT_TYPE,
	JAVA_STRUCT_FIELD,
	JAVA_STRUCT_OFFSET,
	JAVA_STRUCT_ADDRESS,
	JAVA_TYPES,
	JAVA_TYPE_BYTES,
	JAVA_TYPE_NAME,
	JAVA_TYPE_SIZE,
	JAVA_SYMBOLS,
};

/* And what these say: offsets in bytes, sizes, and, behind JAVA_OFFSETS, addresses. */
enum java_place {
	JAVA_QUEUE_START = 0, /* of what has the interpreter's code */
	JAVA_QUEUE_BYTES,
	JAVA_METHOD_CONSTANT,
	JAVA_CONSTANT_POOL,
	JAVA_CONSTANT_WORDS,
	JAVA_CONSTANT_FLAGS,
	JAVA_CONSTANT_CODE,
	JAVA_CONSTANT_NAME,
	JAVA_CONSTANT_SIGNATURE,
	JAVA_CONSTANT_BYTES,
	JAVA_POOL_HOLDER,
	JAVA_POOL_LENGTH,
	JAVA_POOL_FILE,
	JAVA_POOL_BYTES,
	JAVA_CLASS_NAME,
	JAVA_TEXT_LENGTH,
	JAVA_TEXT,
	JAVA_OFFSETS,
	JAVA_VERSION = JAVA_OFFSETS,
	JAVA_CODE,
	JAVA_PLACES,
};

/* Offsets in bytes, all below PYTHON_CODE_BYTES. */
struct python_layout {
	struct memtoll_python_offsets walk; /* for BPF programs */
	uint16_t version;		    /* 0x030b: 3.11 */
	bool free_threaded;
	uint16_t object_type; /* every object: its type */
	uint16_t type_name;   /* type: pointer to its name in C */
	uint16_t code_bytes;  /* of a code object, up to the last field needed */
	uint16_t code_size;   /* number of instructions; 0: not there */
	uint16_t code_file;
	uint16_t code_name; /* qualified name since 3.11 */
	uint16_t code_lines;
	uint16_t code_first_line;
	uint16_t text_length;	   /* str: number of characters */
	uint16_t text_state;	   /* bit field, as 3.9 to 3.13 have it ... */
	uint16_t text_state_shift; /* ... from this bit on */
	uint16_t text_ascii;	   /* where its characters begin, if all are ASCII */
	uint16_t text_other;	   /* and if not */
	uint16_t bytes_size;
	uint16_t bytes_data;
	int32_t v8[V8_CONSTANTS];
	uint16_t java[JAVA_OFFSETS];
};

#define PYTHON_CODE_BYTES 256

/* An interpreter's symbols in a file; values are addresses of the file, 0: it has none. */
struct python_symbols {
	uint64_t runtime;      /* _PyRuntime */
	uint64_t version;      /* Py_Version, 3.11 and later */
	uint64_t ruby_version; /* its name */
	uint64_t
		ruby_context; /* ruby_current_ec, in the block of each thread, where 0 is a place */
	size_t ruby_context_index, ruby_section; /* and which symbol of which table it is */
	bool has_ruby_context;
	uint64_t php_globals; /* executor_globals */
	uint64_t php_threads; /* executor_globals_offset: built with threads */
	uint64_t v8[V8_CONSTANTS];
	uint64_t java[JAVA_SYMBOLS];
};

/*
 * Look for an interpreter in the file behind an executable mapping. 0 and *layout; -ENODATA: there
 * is none; -ENOTSUP: its version is not supported (layout->version, 0 where it cannot be
 * determined); -ENOEXEC: no usable file; or -errno of reading the file or the process's memory.
 */
int python_offsets_find(pid_t pid, const struct mapping *mapping, struct python_layout *layout);

/*
 * The layout described by the debug offsets at the start of _PyRuntime, since 3.13
 * (Include/internal/pycore_debug_offsets.h). Its runtime address stays 0. 0, or -ENOTSUP.
 */
#define PYTHON_DEBUG_WORDS 81
int python_offsets_described(const uint64_t words[PYTHON_DEBUG_WORDS],
			     struct python_layout *layout);

#endif /* MEMTOLL_PYTHON_OFFSETS_H */
