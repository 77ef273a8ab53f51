/* SPDX-License-Identifier: GPL-2.0 */
/* mapping.bpf.h: a mapping call, and those that are waiting to be summed. */
#ifndef MEMTOLL_MAPPING_BPF_H
#define MEMTOLL_MAPPING_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "state/losses.bpf.h"
#include "state/rates.bpf.h"
#include "state/thread.bpf.h"

/* include/uapi/asm-generic/mman-common.h */
#define MADV_DONTNEED_CODE 4
#define MADV_FREE_CODE 8
#define MADV_COLD_CODE 20
#define MADV_PAGEOUT_CODE 21
#define MADV_DONTNEED_LOCKED_CODE 24

/* Those that were only counted get to the sums: another is looked at, or a slice or the thread ends. */
int maps_settle(struct thread *thread, __u32 tgid);

/* A mapping call, by its number, has begun: its arguments are those of the running thread. */
int map_begin(struct thread *thread, __s32 nr);

/* The call that the running thread's map has has ended with this result. */
int map_finish(__s64 ret);

/* A mapping call went unseen, of which is known only that there was one. */
static __always_inline void map_lost(void)
{
	struct memtoll_rates *rates = rates_here();

	lose(LOST_MAPS_UNWATCHED, 1);
	if (rates)
		rates->unwatched_maps++;
}

#endif /* MEMTOLL_MAPPING_BPF_H */
