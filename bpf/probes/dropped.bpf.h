/* SPDX-License-Identifier: GPL-2.0 */
/* dropped.bpf.h: pages are thrown out, in the context of whoever does it. */
#ifndef MEMTOLL_DROPPED_BPF_H
#define MEMTOLL_DROPPED_BPF_H

#include "vmlinux.h"

#include "wire/sums.h"

/* include/linux/sched.h: who reclaims. */
#define PF_MEMALLOC_FLAG 0x00000800 /* memalloc_noreclaim_save() */
#define PF_KSWAPD_FLAG 0x00020000

/* what: DROP_*. */
int dropped(__u32 what, __u64 pages);

#endif /* MEMTOLL_DROPPED_BPF_H */
