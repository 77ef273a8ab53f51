/* SPDX-License-Identifier: GPL-2.0 */
/*
 * other_tracers.h: finds other memtolls that trace the same process. Each keeps its own overhead
 * limit and takes the cost of the others for the program's own, so the user is warned.
 */
#ifndef MEMTOLL_OTHER_TRACERS_H
#define MEMTOLL_OTHER_TRACERS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The first of these processes (pid_t) that another running memtoll traces as well; 0: none. own:
 * the id of the caller's map of processes. relieving: those of the caller's own parent do not count,
 * as one of them takes over from the other.
 *
 * The maps of others are duplicated from their descriptors (pidfd_getfd(2), Linux 5.6,
 * CAP_SYS_PTRACE), since only CAP_SYS_ADMIN may list the kernel's maps. Where no thread can be
 * created there is no search, and it takes half a second at most: any process may call itself
 * memtoll and have any descriptors.
 */
pid_t other_tracers_share(const GArray *pids, uint32_t own, bool relieving);

#endif /* MEMTOLL_OTHER_TRACERS_H */
