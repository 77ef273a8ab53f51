/* SPDX-License-Identifier: GPL-2.0 */
/*
 * unwind_cache.h: compiled unwind tables kept on disk, so that attaching to a process with many
 * libraries does not compile them again. By file, not by build id: whoever makes a file gives it the
 * build id that he likes, and would choose the rows of somebody else's. In $MEMTOLL_CACHE if set
 * (empty: no cache); else /var/cache/memtoll/unwind for root, $XDG_CACHE_HOME/memtoll/unwind (or
 * ~/.cache/...) for others. A directory that somebody else owns or may write to, or that is a symbolic link, is not
 * used. The tables together take up to UNWIND_CACHE_BYTES; those unused for longest are removed.
 */
#ifndef MEMTOLL_UNWIND_CACHE_H
#define MEMTOLL_UNWIND_CACHE_H

#include "unwind/unwind_table.h"

#define UNWIND_CACHE_BYTES (256ull << 20)

/*
 * What tells a file, as it is now, from all others: a hash, in hexadecimal, of where it is, its size,
 * the times of its last changes, which nobody can set back (inode(7), ctime), and its build id. Freed by
 * the caller; NULL where the file cannot be asked.
 */
char *unwind_file_key(const char *build_id_hex, int fd);

/*
 * The table of the file behind fd: from the cache, else compiled and stored; failing to store is no
 * error. key: as unwind_file_key() has it; "", or what else is not 8 to 64 bytes in hexadecimal, is
 * never cached, nor is what a FUSE file system serves, which says of its files what it likes. Errors,
 * and the table after them: as of unwind_table_compile(). Freed with unwind_table_free().
 */
int unwind_cache_get(const char *key, int fd, struct unwind_table *table);

#endif /* MEMTOLL_UNWIND_CACHE_H */
