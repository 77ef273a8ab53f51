/* SPDX-License-Identifier: GPL-2.0 */
/*
 * other_tracers.h: other memtolls that trace the same process. Each keeps its overhead limit by itself
 * and takes what the others cost for the program's own; so it is said.
 */
#ifndef MEMTOLL_OTHER_TRACERS_H
#define MEMTOLL_OTHER_TRACERS_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * The maps of processes of all memtolls that run now but the one whose map that is: descriptors, closed
 * with g_array_unref(). Needs CAP_SYS_ADMIN, as all that looks at others' maps (bpf(2)): empty without.
 */
GArray *other_tracers_find(int own_map);

/* Whether one of those traces the process. */
bool other_tracers_have(const GArray *maps, pid_t pid);

#endif /* MEMTOLL_OTHER_TRACERS_H */
