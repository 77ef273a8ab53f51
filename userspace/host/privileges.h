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
#include <stddef.h>
#include <sys/types.h>

enum privileges {
	/* To trace: privileges_list(), and, of root's, to write a recording in any directory. */
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
 * missing of what it takes to trace one's own processes.
 */
int check_privileges(void);

/* The same of what it takes to trace this process. */
int check_privileges_for(pid_t pid);

enum privilege_need {
	PRIVILEGE_ALWAYS,
	PRIVILEGE_OTHERS, /* for processes and files of other users */
	PRIVILEGE_BETTER, /* without it something is missing, or where the kernel is set so */
};

/* A capability that is made use of. */
struct privilege {
	const char *name;
	enum privilege_need need;
	const char *reason;
	const char *until; /* it is dropped when */
	bool has;
};

#define PRIVILEGES_MAX 16

/* All of them, and whether this thread has it. How many. */
size_t privileges_list(struct privilege *privileges, size_t capacity);

/* Whether it is in the bounding set: root, or a program that has it by its file, could have it here. */
bool privilege_is_bounded(const char *name);

/* What is looked at beside capabilities, by trial: perf events of a CPU, and whose pids /proc has. */
bool privileges_may_open_events(void);
bool privileges_first_pid_namespace(void);
/* Capabilities of another are not the kernel's: for BPF and perf events they count for nothing. */
bool privileges_first_user_namespace(void);
/* Linux before 5.15. */
bool privileges_kernel_is_old(void);

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
