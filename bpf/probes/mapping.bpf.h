/* SPDX-License-Identifier: GPL-2.0 */
/* mapping.bpf.h: mapping calls that are waiting to be summed. */
#ifndef MEMTOLL_MAPPING_BPF_H
#define MEMTOLL_MAPPING_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "state/thread.bpf.h"

/* Those that were only counted get to the sums: another is looked at, or a slice or the thread ends. */
int maps_settle(struct thread *thread, __u32 tgid);

#endif /* MEMTOLL_MAPPING_BPF_H */
