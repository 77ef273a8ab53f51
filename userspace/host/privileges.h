/* SPDX-License-Identifier: GPL-2.0 */
/*
 * privileges.h: checks that this process may trace, and drops capabilities(7) it does not need.
 *
 * They are dropped for good, by the calling thread and those it creates later. A command that root
 * runs under memtoll still gets root's capabilities by its exec.
 */
#ifndef MEMTOLL_PRIVILEGES_H
#define MEMTOLL_PRIVILEGES_H

#include <stdbool.h>
#include <sys/types.h>

enum privileges {
	/*
	 * To trace: CAP_BPF and CAP_PERFMON, for programs and probes, CAP_SYS_PTRACE and
	 * CAP_DAC_READ_SEARCH, for what is read of other users' processes. And of
	 * what makes it better: CAP_SYS_NICE (priority.h), CAP_SYSLOG (addresses in
	 * /proc/kallsyms), CAP_CHECKPOINT_RESTORE (files that were deleted while mapped), CAP_KILL
	 * (to end a command of another user); of root's, to write a recording in any directory.
	 */
	PRIVILEGES_TRACE,
	/* When all probes are attached; new processes may still be followed. */
	PRIVILEGES_FOLLOW,
	/* To write a file in any directory, and to read any. */
	PRIVILEGES_WRITE,
	/* To read any file. */
	PRIVILEGES_READ,
	/* The same, and to become the user behind sudo (privileges_leave()); then only that. */
	PRIVILEGES_SHOW,
	PRIVILEGES_LEAVE,
	PRIVILEGES_NONE,
};

/*
 * Keeps PRIVILEGES_TRACE. Exit status (message.h): 0, or 3 after a message that says what is
 * missing.
 */
int check_privileges(void);

/* Drop all others, of those the thread has. */
void privileges_keep(enum privileges privileges);

/* The user behind sudo; false where there is none, or we are not root. */
bool privileges_invoker(uid_t *user, gid_t *group);

/* Keep a command from inheriting capabilities that a non-root user has for memtoll. */
void privileges_keep_from_command(void);

/*
 * In a child that runs a program of the user's, a pager: as the user behind sudo, and without
 * capabilities, which root's exec would get again.
 */
void privileges_leave(void);

#endif /* MEMTOLL_PRIVILEGES_H */
