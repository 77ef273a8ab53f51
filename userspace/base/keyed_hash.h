/* SPDX-License-Identifier: GPL-2.0 */
/*
 * keyed_hash.h: hashes of values that a target chooses (names, inodes), with a secret key. GLib's
 * hashes have none: 65,000 names with the same hash would make a table a list.
 */
#ifndef MEMTOLL_KEYED_HASH_H
#define MEMTOLL_KEYED_HASH_H

#include <glib.h>
#include <stdint.h>

guint keyed_hash_text(gconstpointer text);
guint keyed_hash_file(uint64_t inode, uint32_t dev);

#endif /* MEMTOLL_KEYED_HASH_H */
