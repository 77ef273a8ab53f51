/* SPDX-License-Identifier: GPL-2.0 */
/* populate.bpf.h: pages that the kernel faults in for a program inside a system call. */
#ifndef MEMTOLL_POPULATE_BPF_H
#define MEMTOLL_POPULATE_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "state/thread.bpf.h"

/* A mapping call begins, as thread->map has it; file: the struct file that mmap was given, or 0. */
int populate_begin(struct thread *thread, __u64 file);

/*
 * A call has ended, and thread->populated says what it was and how many faults were taken inside:
 * they become a run, behind those that are open.
 */
int populate_end(struct thread *thread);

#endif /* MEMTOLL_POPULATE_BPF_H */
