/* SPDX-License-Identifier: GPL-2.0 */
/* emit.bpf.h: how a record is sent. */
#ifndef MEMTOLL_EMIT_BPF_H
#define MEMTOLL_EMIT_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "state/losses.bpf.h"

struct events_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16777216);
};
extern struct events_map events SEC(".maps");

/* Where in the ring buffer userspace was last woken for much data. */
extern volatile __u64 woken_position;

int much_is_waiting(void);

extern volatile __u64 woken_until_ns;

/*
 * Whether userspace is to be woken, so that it may look at a process, or at where it has mapped a
 * file, while that is there. Where they come and go by the hundreds it is too late for most of them,
 * and waking takes a tenth of what a fork does, and of a fault several times what it takes: after
 * some 64 at once no more than one in 5 ms. Userspace polls.
 */
int wake_is_due(__u64 now);

/* Copy a finished record into the ring buffer; count it as lost, `weight` times, if it is full. */
static __always_inline void emit(void *record, __u64 size, __u32 loss, __u64 weight, bool urgent)
{
	__u64 flags = BPF_RB_NO_WAKEUP;

	if (urgent || much_is_waiting())
		flags = BPF_RB_FORCE_WAKEUP;
	if (bpf_ringbuf_output(&events, record, size, flags))
		lose(loss, weight);
}

#endif /* MEMTOLL_EMIT_BPF_H */
