/* SPDX-License-Identifier: GPL-2.0 */
/* proc.h: reads a process's files in /proc; formats: proc(5). */
#ifndef MEMTOLL_PROC_H
#define MEMTOLL_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/maps.h"

/* PF_KTHREAD and PF_EXITING (include/linux/sched.h). */
#define PROC_FLAG_KTHREAD 0x00200000U
#define PROC_FLAG_EXITING 0x00000004U

/* PID_MAX_LIMIT (include/linux/threads.h): kernel.pid_max is no more. */
#define PROC_PID_MAX (4 << 20)

struct proc_stat {
	char comm[64];
	char state; /* 'R', 'S', 'Z' ... */
	pid_t ppid;
	uint32_t flags;	       /* PF_*: PROC_FLAG_KTHREAD */
	uint64_t minor_faults; /* all threads, living and dead */
	uint64_t major_faults;
	uint64_t threads;
	uint64_t start_ticks; /* since boot, in clock ticks; differs if the pid was reused */
	/* Placed anew, at random, by each exec (proc(5), startstack); 0: not ours to know. */
	uint64_t stack_start;
	int exit_code;
};

/* Read /proc/PID/stat, or /proc/PID/task/TID/stat when tid is not 0. 0 or -errno. */
int proc_stat_read(pid_t pid, pid_t tid, struct proc_stat *stat);

/*
 * Of a process: waited for or not, and also while it gives its memory back. One whose first thread
 * alone has ended goes on.
 */
bool proc_stat_has_ended(const struct proc_stat *stat);

/* Of /proc/PID/status, whose values have units and whose name is escaped. */
struct proc_status {
	pid_t tgid;	    /* the process that the thread belongs to */
	int64_t rss_bytes;  /* VmRSS; -1: it has no memory (any more) */
	int64_t swap_bytes; /* VmSwap; -1: the same */
};

/* Read /proc/TID/status; TID may also be a thread that /proc does not list. 0 or -errno. */
int proc_status_read(pid_t tid, struct proc_status *status);

/*
 * How often a thread has got a CPU (sched-stats.rst): one that is held up gets none meanwhile. 0:
 * unknown, as of a kernel that does not say (CONFIG_SCHED_INFO).
 */
uint64_t proc_turns(pid_t pid, pid_t tid);

/*
 * The word at text, up to a blank or the end, without the kernel's octal escapes (\040 for a blank,
 * as in mountinfo and swaps). Freed by the caller with g_free().
 */
char *proc_unescape(const char *text);

/* Command line, spaces between the arguments; "[comm]" of kernel threads. Freed by the caller. */
char *proc_cmdline(pid_t pid);

/* Path of the executable, as the process sees it. NULL if unreadable. Freed by the caller. */
char *proc_exe(pid_t pid);

/* Limit for an environment: execve(2) allows some MiB, but prctl(2) any address range. */
#define PROC_ENVIRONMENT_MAX (4U << 20)

/*
 * Value of a variable in the environment that the program was started with; NULL where it is not
 * set or unreadable. Freed by the caller.
 */
char *proc_environment(pid_t pid, const char *name);

/*
 * Whether the process's comm, or its executable's file name, is name. Zombies, kernel threads and
 * the caller have none.
 */
bool proc_has_name(pid_t pid, const char *name);

/* All that have it. Number found (pids allocated, freed by the caller), or -errno. */
ssize_t proc_find_name(const char *name, pid_t **pids);

#endif /* MEMTOLL_PROC_H */
