/* SPDX-License-Identifier: GPL-2.0 */
/* return_probe.bpf.h: what return probes put in the place of return addresses. */
#ifndef MEMTOLL_RETURN_PROBE_BPF_H
#define MEMTOLL_RETURN_PROBE_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "wire/pages.h"

struct unwind;

__u64 true_return(__u64 slot);
int unwind_see_through(struct unwind *walk);

/* The page where the kernel keeps what its probes execute: return probes send functions there. */
static __always_inline __u64 probe_page(struct task_struct *task)
{
	return BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

static __always_inline bool is_trampoline(struct task_struct *task, __u64 address)
{
	__u64 page = probe_page(task);

	return page && address - page < MEMTOLL_PAGE_SIZE;
}

#endif /* MEMTOLL_RETURN_PROBE_BPF_H */
