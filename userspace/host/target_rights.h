/* SPDX-License-Identifier: GPL-2.0 */
/* target_rights.h: files that a traced process names are opened as that process would. */
#ifndef MEMTOLL_TARGET_RIGHTS_H
#define MEMTOLL_TARGET_RIGHTS_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#define RIGHTS_GROUPS_MAX 64 /* further ones are left out: less may be read */
#define RIGHTS_NOBODY 65534

/* File system user and groups of a process. */
struct target_rights {
	unsigned int user, group;
	unsigned int other[RIGHTS_GROUPS_MAX]; /* supplementary ones */
	size_t others;
};

/* False: the process is gone; the rights are nobody's then. */
bool target_rights_read(pid_t pid, struct target_rights *rights);

/*
 * Of this thread, for good (setfsuid(2) is per thread). Where ids are ours, but cannot be changed,
 * our own without capabilities. False, which is said once: it still has some of its own.
 */
bool target_rights_take(const struct target_rights *rights);

/*
 * before(job), unless it is NULL, with our own rights, and then work(root, job) in a thread that
 * has the file system rights of the process: its user and groups, without root's right to read
 * everything unless that is its user; where we are not root, our own user without capabilities.
 * root: the process's root directory (root_open.h), closed behind it.
 *
 * False: the process is gone, or has not answered in TIMED_CALL_FILE_MS (timed_call.h), as with a
 * FUSE file system; release(job) has been called, or will be. True: work has been called, and job
 * belongs to the caller. Both in that thread, since both may be kept waiting.
 */
bool with_target_rights(pid_t pid, void (*before)(void *job), void (*work)(int root, void *job),
			void *job, GDestroyNotify release);

#endif /* MEMTOLL_TARGET_RIGHTS_H */
