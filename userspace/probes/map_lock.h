/* SPDX-License-Identifier: GPL-2.0 */
/*
 * map_lock.h: the programs that see mapping calls by the lock that they take, while system calls
 * rest (bpf/probes/map_lock.bpf.c).
 */
#ifndef MEMTOLL_MAP_LOCK_H
#define MEMTOLL_MAP_LOCK_H

#include <glib.h>

struct memtoll_bpf;
struct map_lock;

/* Loaded only when they are wanted, into the maps of bpf. NULL: this kernel cannot (errno). */
struct map_lock *map_lock_load(const struct memtoll_bpf *bpf);
void map_lock_free(struct map_lock *lock); /* NULL is fine */

/* Attached until the array is freed. NULL: they cannot be. */
GPtrArray *map_lock_attach(const struct map_lock *lock);

#endif /* MEMTOLL_MAP_LOCK_H */
