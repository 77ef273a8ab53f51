/* SPDX-License-Identifier: GPL-2.0 */
/* growth.bpf.h: by how much realloc makes blocks larger, and what it copies for that. */
#ifndef MEMTOLL_GROWTH_BPF_H
#define MEMTOLL_GROWTH_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "state/open_calls.bpf.h"
#include "probes/latency.bpf.h"
#include "wire/sums.h"

/*
 * A realloc of a block whose size is known. Most of what many small steps cost is the copies: they
 * are counted at the least that there was to copy.
 */
static __always_inline void growth_add(struct memtoll_call_sum *sum, const struct open_call *call,
				       const struct call_end *end)
{
	__u64 old = call->old_size, size = call->size;

	if (!old || end->failed || !size || !end->addr)
		return;
	if (size > old) {
		__sync_fetch_and_add(&sum->grown_calls, 1);
		__sync_fetch_and_add(&sum->grown_bytes, size - old);
	}
	if (end->addr != call->pointer && !call->remapped) {
		__sync_fetch_and_add(&sum->copied_calls, 1);
		__sync_fetch_and_add(&sum->copied_bytes, size < old ? size : old);
	}
}

#endif /* MEMTOLL_GROWTH_BPF_H */
