/* SPDX-License-Identifier: GPL-2.0 */
/*
 * boot_cache.h: what takes long to find out and holds until the machine is booted again, kept in
 * small files, so that later starts need not find it out.
 *
 * The directory is $MEMTOLL_PRICES if set (empty: nothing is kept), else /run/memtoll for root, which
 * goes with the boot, and $XDG_RUNTIME_DIR/memtoll for others.
 */
#ifndef MEMTOLL_BOOT_CACHE_H
#define MEMTOLL_BOOT_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What was kept of this kind under this key during this boot, whole and as large as this. false:
 * there is none, or somebody else may have written it; content is undefined then.
 */
bool boot_cache_read(const char *kind, const char *key, void *content, size_t size);

/* Likewise, where its size is not known. Freed by the caller with g_free(); NULL: there is none. */
void *boot_cache_load(const char *kind, const char *key, size_t *size);

/* Whether anything can be kept: to be asked before what is dear to find out. */
bool boot_cache_keeps(void);

/* Replaces what is there. Failing to store is no error. */
void boot_cache_write(const char *kind, const char *key, const void *content, size_t size);

#endif /* MEMTOLL_BOOT_CACHE_H */
