/* SPDX-License-Identifier: GPL-2.0 */
/* losses.bpf.h: what is lost is counted, by name. */
#ifndef MEMTOLL_LOSSES_BPF_H
#define MEMTOLL_LOSSES_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/losses.h"

struct losses_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MEMTOLL_LOSS_COUNT);
	__type(key, __u32);
	__type(value, __u64);
};
extern struct losses_map losses SEC(".maps");

/* A global function, as all that are not inline: the verifier looks at each once. */
int lose(__u32 what, __u64 count);

#endif /* MEMTOLL_LOSSES_BPF_H */
