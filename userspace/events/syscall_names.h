/* SPDX-License-Identifier: GPL-2.0 */
/* syscall_names.h: system calls in which the kernel works on a program's pages. */
#ifndef MEMTOLL_SYSCALL_NAMES_H
#define MEMTOLL_SYSCALL_NAMES_H

/* "close" ..; of others "another system call". -1: "" */
const char *syscall_name(int number);

#endif /* MEMTOLL_SYSCALL_NAMES_H */
