/* SPDX-License-Identifier: GPL-2.0 */
/*
 * other_tracers.h: other memtolls that trace the same process. Each keeps its overhead limit by
 * itself and takes what the others cost for the program's own; so it is said.
 */
#ifndef MEMTOLL_OTHER_TRACERS_H
#define MEMTOLL_OTHER_TRACERS_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * The maps of processes of all other memtolls that run now: descriptors, closed with
 * g_array_unref(). They are taken from those themselves (pidfd_getfd(2), Linux 5.6,
 * CAP_SYS_PTRACE): the kernel gives its list of maps only to CAP_SYS_ADMIN.
 */
GArray *other_tracers_find(void);

/* Whether one of those traces the process. */
bool other_tracers_have(const GArray *maps, pid_t pid);

#endif /* MEMTOLL_OTHER_TRACERS_H */
