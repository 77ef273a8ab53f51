/* SPDX-License-Identifier: GPL-2.0 */
/*
 * other_tracers.h: other memtolls that trace the same process. Each keeps its overhead limit by
 * itself and takes what the others cost for the program's own; so it is said.
 */
#ifndef MEMTOLL_OTHER_TRACERS_H
#define MEMTOLL_OTHER_TRACERS_H

#include <glib.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The first of these processes (of pid_t) that another memtoll that runs now traces, too; 0: none.
 * own: the id of the caller's own map of processes.
 *
 * The others' maps of processes are taken from those themselves (pidfd_getfd(2), Linux 5.6,
 * CAP_SYS_PTRACE): the kernel gives its list of maps only to CAP_SYS_ADMIN. Where no thread can be
 * made nobody is looked for, and not for longer than half a second: a process may call itself so,
 * and hold whatever it likes.
 */
pid_t other_tracers_share(const GArray *pids, uint32_t own);

#endif /* MEMTOLL_OTHER_TRACERS_H */
