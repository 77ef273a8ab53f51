/* SPDX-License-Identifier: GPL-2.0 */
/*
 * syscalls.h: the system calls that are watched (mapping calls, calls that read, futex), by one
 * pair of programs for all (bpf/probes/syscall.bpf.c), and what counts such calls while they are
 * not watched.
 *
 * While any of them is watched, every system call of the machine goes the kernel's slower way
 * (syscall_regfunc() in kernel/tracepoint.c sets SYSCALL_WORK_SYSCALL_TRACEPOINT on all threads)
 * and through both programs: 80 to 130 ns each.
 */
#ifndef MEMTOLL_SYSCALLS_H
#define MEMTOLL_SYSCALLS_H

#include <stdbool.h>

struct memtoll_bpf;
struct syscalls;

/* The programs must be loaded. NULL with errno set, after one message. */
struct syscalls *syscalls_attach(struct memtoll_bpf *bpf, bool mappings, bool reads);
/* NULL will do. */
void syscalls_detach(struct syscalls *syscalls);

/*
 * Whether read(2) alone, or all of them, can be left: other tracepoints then count mapping
 * calls, and reads of files, that go unwatched (6.12 and later).
 */
bool syscalls_may_leave_plain_reads(const struct syscalls *syscalls);
bool syscalls_may_leave(const struct syscalls *syscalls);

/*
 * Watch them from now on, or leave them; plain_reads: read(2) with the others. To be called at each
 * step: what counted the missed calls goes a step after the calls are watched again.
 */
void syscalls_watch(struct syscalls *syscalls, bool watched, bool plain_reads);
/* Whether all that are wanted are there: of all but read(2), and of read(2). */
bool syscalls_are_watched(const struct syscalls *syscalls);
bool syscalls_plain_reads_are_watched(const struct syscalls *syscalls);

/*
 * Whether they can be seen in windows only (bpf/state/read_rest.bpf.h): the kernel counts reads
 * meanwhile, another tracepoint mapping calls, and a wait for a lock is a call of the allocator
 * that sleeps for nothing else (latency.bpf.h).
 */
bool syscalls_may_rest(const struct syscalls *syscalls);
/*
 * Where they rest mapping calls are seen all the same, by their lock, but for MADV_DONTNEED and
 * MADV_FREE of Linux 6.17 and later. False: they are counted only.
 */
bool syscalls_see_maps_resting(const struct syscalls *syscalls);
/* From now on, or no longer. 0, or -errno: they are seen in windows. */
int syscalls_rest(struct syscalls *syscalls, bool rest);
bool syscalls_do_rest(const struct syscalls *syscalls);
/* Where they rest: a window begins, or ends. 0, or -errno: they are not seen. */
int syscalls_see(struct syscalls *syscalls, bool see);

/*
 * Where they rest: what was read between windows, which only the kernel has counted, is in the
 * rates from now on; ends a window. False: they do not. A rest that ends is settled.
 */
bool syscalls_settle(struct syscalls *syscalls);

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
