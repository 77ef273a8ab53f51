/* SPDX-License-Identifier: GPL-2.0 */
/* fault.bpf.h: faults that are waiting to be sent. */
#ifndef MEMTOLL_FAULT_BPF_H
#define MEMTOLL_FAULT_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "state/thread.bpf.h"

int fault_settle_open(struct thread *thread);
int run_emit(struct thread *thread);
int run_close(struct thread *thread);
/* What the running process has at an address goes to thread->area, unless it is there. */
int area_learn(struct thread *thread, __u64 address);

/* A fault whose end was not seen is over where its thread does something else. */
static __always_inline void fault_settle(struct thread *thread)
{
	if (thread->fault.active)
		fault_settle_open(thread);
}

#endif /* MEMTOLL_FAULT_BPF_H */
