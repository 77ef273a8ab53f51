/* SPDX-License-Identifier: GPL-2.0 */
/*
 * syscalls.h: the tracepoints of system calls (mapping calls, calls that read, futex), and what
 * counts such calls while they are detached.
 *
 * While any of them is there, every system call of the machine goes the kernel's slower way
 * (syscall_regfunc() in kernel/tracepoint.c sets SYSCALL_WORK_SYSCALL_TRACEPOINT on all threads):
 * 50 to 100 ns each.
 */
#ifndef MEMTOLL_SYSCALLS_H
#define MEMTOLL_SYSCALLS_H

#include <stdbool.h>

struct memtoll_bpf;
struct syscalls;

/* The programs must be loaded. NULL with errno set, after one message. */
struct syscalls *syscalls_attach(struct memtoll_bpf *bpf, bool mappings, bool reads);
/* Detach what is still attached, and wait until it is. NULL will do. */
void syscalls_detach(struct syscalls *syscalls);

/*
 * Whether read(2) alone, or all of them, can be detached: other tracepoints then count mapping
 * calls, and reads of files, that go unwatched (6.12 and later).
 */
bool syscalls_may_leave_plain_reads(const struct syscalls *syscalls);
bool syscalls_may_leave(const struct syscalls *syscalls);

/*
 * Watch them from now on, or detach them; plain_reads: read(2) with the others. Call it again: what
 * is still being detached, which a workqueue does, cannot be attached yet.
 */
void syscalls_watch(struct syscalls *syscalls, bool watched, bool plain_reads);
/* Whether all that are wanted are there: of all but read(2), and of read(2). */
bool syscalls_are_watched(const struct syscalls *syscalls);
bool syscalls_plain_reads_are_watched(const struct syscalls *syscalls);

/*
 * Count the targets' system calls from now on, or no longer, in windows: what all of them pay is
 * known by how many there are (rates.syscalls, passes). Only while some are watched. Whether they
 * are counted.
 */
bool syscalls_count(struct syscalls *syscalls, bool counting);

/*
 * Watch futex calls inside the allocator from now on, as long as others are (lock.bpf.c): once some
 * call may wait for a lock. Whether they are watched.
 */
bool syscalls_follow_locks(struct syscalls *syscalls);

#endif /* MEMTOLL_SYSCALLS_H */
