/* SPDX-License-Identifier: GPL-2.0 */
/*
 * object.h: one mapped file (program, library, vDSO) and the names inside it, by libdwfl.
 *
 * Addresses here are the file's own ("module addresses": what nm and addr2line use), so that one
 * object serves every process that maps the file. The file and its debug information may be
 * hostile: bounded work, nothing is opened over the network, and a file that is truncated while
 * it is being read costs its names, not the program (SIGBUS is caught).
 */
#ifndef MEMTOLL_OBJECT_H
#define MEMTOLL_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/scopes.h"

#define OBJECT_FRAMES_MAX SCOPES_MAX

struct object;
struct target_rights;

struct object_frame {
	char *function; /* demangled, never NULL; "" where no symbol covers the address */
	char *file;	/* never NULL */
	uint32_t line;
	uint64_t start; /* first address of the function; 0: not known */
};

/*
 * Open the object behind fd (owned by the object from now on, also after an error). path: as the
 * process sees it. root: descriptor of that process's root directory (root_open.h), where debug
 * files are looked for besides our own; borrowed, must outlive the object; -1: none. rights: by
 * which they are opened; NULL: our own. Program headers and build-id are read now, the rest by the
 * first object_find(). Never NULL; in a file that is not a usable ELF program nothing is found.
 */
struct object *object_new(int fd, const char *path, int root, const struct target_rights *rights);

/* Others than those that it was made with. */
void object_set_rights(struct object *object, const struct target_rights *rights);

void object_free(struct object *object);

/* Names of symbols will do: what lines and inlined functions are read from is not unpacked. */
void object_without_lines(struct object *object);

/* Close the descriptor, where too many are open: what has not been read yet never will be. */
void object_drop_fd(struct object *object);

/* Whether names can still be found, so that descriptors are open. */
bool object_is_open(const struct object *object);

/* Lower-case hexadecimal, "" where the file has none. */
const char *object_build_id(const struct object *object);

/*
 * Module address of this file offset in an executable mapping. False where no segment holds it.
 */
bool object_address(const struct object *object, uint64_t file_offset, uint64_t *address);

/*
 * Names of a module address, innermost inlined function first. Number of frames written to frames
 * (OBJECT_FRAMES_MAX long), 0 if nothing is known. Freed by object_frames_free().
 */
size_t object_find(struct object *object, uint64_t address, struct object_frame *frames);
void object_frames_free(struct object_frame *frames, size_t count);

/* Catch SIGBUS in object_find() from now on; calls nest. Others go to the handler of before. */
void object_guard_install(void);
void object_guard_remove(void);

#endif /* MEMTOLL_OBJECT_H */
