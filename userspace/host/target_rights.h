/* SPDX-License-Identifier: GPL-2.0 */
/* target_rights.h: files that a traced process names are opened as that process would. */
#ifndef MEMTOLL_TARGET_RIGHTS_H
#define MEMTOLL_TARGET_RIGHTS_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * before(job), unless it is NULL, with our own rights, and then work(root, job) in a thread that has the file system rights of the process's user: its user and
 * group (setfsuid(2)), without root's right to read everything; where we are not root, our own user
 * without capabilities. root: the process's root directory (root_open.h), closed behind it.
 *
 * False: the process is gone, or has not answered in TIMED_CALL_FILE_MS (timed_call.h), as with a
 * FUSE file system; release(job) has been called, or will be. True: work has been called, and job
 * belongs to the caller. Both in that thread, since both may be kept waiting.
 */
bool with_target_rights(pid_t pid, void (*before)(void *job), void (*work)(int root, void *job),
			void *job, GDestroyNotify release);

#endif /* MEMTOLL_TARGET_RIGHTS_H */
