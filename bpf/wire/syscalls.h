/* SPDX-License-Identifier: GPL-2.0 */
/* syscalls.h: which program takes a system call, by a table that userspace fills. */
#ifndef MEMTOLL_WIRE_SYSCALLS_H
#define MEMTOLL_WIRE_SYSCALLS_H

/* Numbers of system calls are below it; those above are never watched (x32 has a bit of its own). */
#define SYSCALL_NUMBERS 512

/* Places in the arrays of programs syscall_entries and syscall_exits. */
enum syscall_taker {
	SYSCALL_NOBODY = 0,
	SYSCALL_MAPPING = 1,
	SYSCALL_READ = 2,
	SYSCALL_LOCK = 3,
	SYSCALL_ATTACH = 4, /* shmat */
	SYSCALL_TAKERS = 5,
};

/* When system calls are seen. */
enum memtoll_calls_rest {
	CALLS_ALL_SEEN = 0, /* so far always, where they are watched */
	CALLS_HAVE_RESTED = 1,
	CALLS_REST = 2, /* now in windows only */
};

#endif /* MEMTOLL_WIRE_SYSCALLS_H */
