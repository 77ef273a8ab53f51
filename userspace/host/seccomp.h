/* SPDX-License-Identifier: GPL-2.0 */
/*
 * seccomp.h: whether a probe at a function's return would end a process.
 *
 * The code that the kernel lets a probed function return to makes a system call, uretprobe, since
 * Linux 6.11 on x86-64 (ff474a78cef5). A filter that does not know it refuses it, as those of
 * containers do, and the process ends with a signal. From 6.14 on, and in later stable releases of
 * older kernels, seccomp lets it pass (cf6cb56ef244).
 */
#ifndef MEMTOLL_SECCOMP_H
#define MEMTOLL_SECCOMP_H

#include <stdbool.h>
#include <sys/types.h>

/* The process's first thread has a filter, or strict mode. Which calls pass is not looked at. */
bool seccomp_confines(pid_t pid);

/* By its version: false where no kernel does. */
bool seccomp_may_refuse_returns(void);

/* This one does: asked of a child of this process, once. */
bool seccomp_refuses_returns(void);

#endif /* MEMTOLL_SECCOMP_H */
