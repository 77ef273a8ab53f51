/* SPDX-License-Identifier: GPL-2.0 */
/* read.bpf.h: reads that are waiting to be sent. */
#ifndef MEMTOLL_READ_BPF_H
#define MEMTOLL_READ_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "state/thread.bpf.h"

int reads_emit(struct thread *thread);
int reads_count_out(struct task_struct *task, struct thread *thread) __hidden;
int reads_settle_thread(struct task_struct *task, struct thread *thread) __hidden;
int passes_flush(struct task_struct *task, struct thread *thread) __hidden;

#endif /* MEMTOLL_READ_BPF_H */
