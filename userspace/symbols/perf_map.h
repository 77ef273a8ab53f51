/* SPDX-License-Identifier: GPL-2.0 */
/*
 * perf_map.h: names of code compiled at run time, from /tmp/perf-PID.map.
 *
 * Format (kernel tree, tools/perf/Documentation/jit-interface.txt): a line per function,
 * "START SIZE NAME", the numbers in hexadecimal.
 */
#ifndef MEMTOLL_PERF_MAP_H
#define MEMTOLL_PERF_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct perf_map;

/*
 * Open the map of a process, as the process sees it (its mount namespace, its own pid) and with its
 * rights; nothing is read yet. NULL where there is none, where it is not a regular file or one that
 * a process serves (FUSE), or where its owner is neither the process's user nor root: the owner of
 * the file chooses the names that are reported.
 */
struct perf_map *perf_map_open(pid_t pid);
struct perf_map *perf_map_ref(struct perf_map *map);
void perf_map_unref(struct perf_map *map);

/* Whether both are the same file. */
bool perf_map_same(const struct perf_map *a, const struct perf_map *b);

/*
 * The function that holds address; of overlapping ones the one written last. The file is read on
 * first use, and again when it has grown. The name is valid until the next call. False: none.
 */
bool perf_map_find(struct perf_map *map, uint64_t address, const char **name, uint64_t *start);

/* All of them as they are now, by their start. */
void perf_map_each(struct perf_map *map, void (*each)(void *context, uint64_t start, uint64_t end),
		   void *context);

#endif /* MEMTOLL_PERF_MAP_H */
