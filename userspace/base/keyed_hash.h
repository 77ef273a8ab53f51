/* SPDX-License-Identifier: GPL-2.0 */
/*
 * keyed_hash.h: hashes of what a target chooses: names, numbers of files. GLib's are known to
 * everybody, and 65,000 names with one hash make a table a list.
 */
#ifndef MEMTOLL_KEYED_HASH_H
#define MEMTOLL_KEYED_HASH_H

#include <glib.h>
#include <stdint.h>

guint keyed_hash_text(gconstpointer text);
guint keyed_hash_file(uint64_t inode, uint32_t dev);

#endif /* MEMTOLL_KEYED_HASH_H */
