/* SPDX-License-Identifier: GPL-2.0 */
/*
 * object_cache.h: one object (object.h) for one file, whoever maps it: the debug information of a
 * C library is large, and every process maps it.
 *
 * Files are opened when a process is shown and kept open, since the file may be deleted and the
 * process gone when its addresses are looked up. When the descriptors approach the soft limit of
 * open files, that limit is raised, up to the hard one: only then, because commands started later
 * inherit it.
 */
#ifndef MEMTOLL_OBJECT_CACHE_H
#define MEMTOLL_OBJECT_CACHE_H

#include <stdbool.h>
#include <sys/types.h>

#include "host/maps.h"
#include "symbols/object.h"

struct object_cache;

struct object_cache *object_cache_new(void);
void object_cache_free(struct object_cache *cache);

/*
 * The object of the file behind a mapping, NULL where it cannot be opened. Where no more files may
 * be kept open the object has nothing but its segments and its build-id.
 */
struct object *object_cache_file(struct object_cache *cache, pid_t pid,
				 const struct mapping *mapping);

/* The object of the process's vDSO, NULL where its bytes cannot be had. */
struct object *object_cache_vdso(struct object_cache *cache, pid_t pid,
				 const struct mapping *mapping);

/* Whether one more descriptor may be kept open; raises the soft limit if need be. */
bool object_cache_has_room(const struct object_cache *cache);

/* The caller keeps (1) or has closed (-1) a descriptor of its own, which counts as well. */
void object_cache_count(struct object_cache *cache, int change);

#endif /* MEMTOLL_OBJECT_CACHE_H */
