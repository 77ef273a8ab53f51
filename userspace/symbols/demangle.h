/* SPDX-License-Identifier: GPL-2.0 */
/* demangle.h: readable names of mangled C++ and Rust symbols. */
#ifndef MEMTOLL_DEMANGLE_H
#define MEMTOLL_DEMANGLE_H

#include <stddef.h>

/* Longest readable name, in bytes without the terminator; longer ones are cut. */
#define DEMANGLE_MAX 4095

/*
 * Write the readable form of a linker name to text (size bytes, at least 2), always terminated.
 * Names that are not mangled are copied, without what compilers and linkers append to them:
 * symbol versions ("@GLIBC_2.2.5") and clones (".cold", ".isra.0").
 */
void demangle(const char *name, char *text, size_t size);

#endif /* MEMTOLL_DEMANGLE_H */
