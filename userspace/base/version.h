/* SPDX-License-Identifier: GPL-2.0 */
/* version.h: which memtoll this is. */
#ifndef MEMTOLL_VERSION_H
#define MEMTOLL_VERSION_H

/*
 * Set by the Makefile in the memtoll binary; "unknown" in everything else that links the library.
 */
extern const char memtoll_version[];

#endif /* MEMTOLL_VERSION_H */
