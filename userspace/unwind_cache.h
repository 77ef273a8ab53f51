/* SPDX-License-Identifier: GPL-2.0 */
/*
 * unwind_cache.h: compiled unwind tables kept on disk by build id, so that attaching to a process
 * with many libraries does not compile them again. In $MEMTOLL_CACHE if set (empty: no cache);
 * else /var/cache/memtoll/unwind for root, $XDG_CACHE_HOME/memtoll/unwind (or ~/.cache/...) for
 * others. A directory that somebody else owns or may write to, or that is a symbolic link, is not
 * used. The tables together take up to UNWIND_CACHE_BYTES; those unused for longest are removed.
 */
#ifndef MEMTOLL_UNWIND_CACHE_H
#define MEMTOLL_UNWIND_CACHE_H

#include "unwind_table.h"

#define UNWIND_CACHE_BYTES (256ull << 20)

/*
 * The table of the file behind fd: from the cache, else compiled and stored; failing to store is no
 * error. build_id_hex is its build id in lower-case hexadecimal, as object_build_id() has it; ""
 * and whatever else is not 8 to 64 bytes in hexadecimal is never cached: shorter ones are made by
 * hand, and many files have the same. Errors, and the table after them: as of
 * unwind_table_compile(). Freed with unwind_table_free().
 */
int unwind_cache_get(const char *build_id_hex, int fd, struct unwind_table *table);

#endif /* MEMTOLL_UNWIND_CACHE_H */
