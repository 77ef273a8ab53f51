/* SPDX-License-Identifier: GPL-2.0 */
/*
 * privileges.h: may this process trace, and with as few privileges as that takes (capabilities(7)).
 *
 * What is given up here is given up for good, by the calling thread and by those it starts then. Only the
 * present privileges: a command that root runs under memtoll gets root's by its exec, as ever.
 */
#ifndef MEMTOLL_PRIVILEGES_H
#define MEMTOLL_PRIVILEGES_H

enum privileges {
	/*
	 * To trace: CAP_BPF and CAP_PERFMON, for programs and probes, CAP_SYS_PTRACE and
	 * CAP_DAC_READ_SEARCH, for what is read of other users' processes and of tracefs. And of what
	 * makes it better: CAP_SYS_NICE (priority.h), CAP_SYSLOG (addresses in /proc/kallsyms),
	 * CAP_CHECKPOINT_RESTORE (files that were deleted while mapped), CAP_KILL (to end a command of
	 * another user); of root's, to write a recording in any directory.
	 */
	PRIVILEGES_TRACE,
	/* The same, when all that is there is attached; processes may still come. */
	PRIVILEGES_FOLLOW,
	/* To write a file in any directory, and to read any. */
	PRIVILEGES_WRITE,
	/* To read any file. */
	PRIVILEGES_READ,
	PRIVILEGES_NONE,
};

/*
 * An exit status (message.h): 0, with PRIVILEGES_TRACE from here on, or 3 after one message that says
 * what is missing.
 */
int check_privileges(void);

/* Keep no more than these, of those that there are. */
void privileges_keep(enum privileges privileges);

/* Of what a non-root user was given for memtoll, a command that it runs is to inherit nothing. */
void privileges_keep_from_command(void);

#endif /* MEMTOLL_PRIVILEGES_H */
