/* SPDX-License-Identifier: GPL-2.0 */
/*
 * unwind_cache.h: compiled unwind tables kept on disk, so that attaching to a process with many
 * libraries does not compile them again. Looked up by file, not by build id alone: anybody can give
 * a file the build id of another, and would replace the rows of that.
 *
 * The directory is $MEMTOLL_CACHE if set (empty: no cache), else /var/cache/memtoll/unwind for
 * root, $XDG_CACHE_HOME/memtoll/unwind (or ~/.cache/...) for others. A directory that somebody else
 * owns or may write to, or that is a symbolic link, is not used. Of more than UNWIND_CACHE_BYTES
 * the least recently used tables are removed.
 */
#ifndef MEMTOLL_UNWIND_CACHE_H
#define MEMTOLL_UNWIND_CACHE_H

#include "unwind/unwind_table.h"

#define UNWIND_CACHE_BYTES (256ull << 20)

/*
 * Identifies the present contents of a file: a hash, in hexadecimal, of device, inode, size, the
 * times of its last changes, of which nobody can set back ctime (inode(7)), and build id. Freed by
 * the caller; NULL where fstat() fails.
 */
char *unwind_file_key(const char *build_id_hex, int fd);

/*
 * The table of the file behind fd: from the cache, else compiled and stored; failing to store is no
 * error. key: from unwind_file_key(); one that is not 8 to 64 bytes in hexadecimal, as "", is never
 * cached, nor are files of FUSE, whose server may report any inode and times. Errors, and the table
 * after them: as of unwind_table_compile(). Freed with unwind_table_free().
 */
int unwind_cache_get(const char *key, int fd, struct unwind_table *table);

#endif /* MEMTOLL_UNWIND_CACHE_H */
