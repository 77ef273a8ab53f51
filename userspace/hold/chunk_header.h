/* SPDX-License-Identifier: GPL-2.0 */
/*
 * chunk_header.h: struct malloc_chunk of glibc (malloc/malloc.c): the size of the chunk before, where
 * that is free, then its own size, whose low bits are flags; behind it, what malloc returns.
 */
#ifndef MEMTOLL_CHUNK_HEADER_H
#define MEMTOLL_CHUNK_HEADER_H

#define CHUNK_PREVIOUS_IN_USE 1ULL
#define CHUNK_IS_MMAPPED 2ULL
#define CHUNK_NON_MAIN 4ULL
#define CHUNK_FLAGS 7ULL
#define CHUNK_HEADER 16ULL
#define CHUNK_FENCE 16ULL /* size of a fencepost */

#endif /* MEMTOLL_CHUNK_HEADER_H */
