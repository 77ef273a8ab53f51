/* SPDX-License-Identifier: GPL-2.0 */
/*
 * map_thinning.bpf.h: where small mapping calls cost more than the overhead budget allows, one in so
 * many is timed and its stack is looked at.
 *
 * Each of the others is told to userspace all the same, since owners of memory and what is given back
 * follow from every call; and it is counted, in the thread, with the stack and the time of the last
 * one that was looked at: numbers and bytes stay exact, times and places are those of a sample. Only
 * mmap and munmap of less than what is followed by itself, at most 64 KiB: none of them takes long,
 * so that a sample tells what all took.
 */
#ifndef MEMTOLL_MAP_THINNING_BPF_H
#define MEMTOLL_MAP_THINNING_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/config.h"
#include "wire/records.h"
#include "state/rates.bpf.h"
#include "state/settings.bpf.h"
#include "state/thread.bpf.h"
#include "state/windows.bpf.h"
#include "probes/fault_thinning.bpf.h"

#define SMALL_MAPPING (64ULL << 10)

enum map_draw {
	MAP_LOOKED_AT = 0, /* in any case */
	MAP_DRAWN = 1,	   /* and speaks for those after it */
	MAP_PASSED = 2
};

static __always_inline bool is_passed(const struct open_map_call *map)
{
	return map->draw == MAP_PASSED;
}

static __always_inline struct passed_calls *passed_calls_of(struct thread *thread)
{
	return &thread->passed_maps[thread->map.map_fn & (PASSED_KINDS - 1)];
}

static __always_inline bool map_is_small(const struct open_map_call *map)
{
	if (map->len >= cfg_min_size || map->len >= SMALL_MAPPING)
		return false;
	/* Nothing of a file, and nothing that is faulted in at once. */
	return map->map_fn == MAP_FN_MUNMAP ||
	       (map->map_fn == MAP_FN_MMAP &&
		(map->flags & (MAPPING_ANONYMOUS | MAPPING_POPULATE)) == MAPPING_ANONYMOUS);
}

/* Of a call that begins, whose arguments and flags are in thread->map. */
static __always_inline enum map_draw map_draw(struct thread *thread)
{
	struct memtoll_rates *rates = rates_here();

	if (!rates || thread->in_fn || !map_is_small(&thread->map))
		return MAP_LOOKED_AT;
	if (fault_draw != ~0U && passed_calls_of(thread)->stack_id &&
	    ++thread->held_draws * ROOT_OF_TWO > fault_draw) {
		rates->passed_maps++;
		rates->held_calls++;
		return MAP_PASSED;
	}
	rates->drawn_maps++;
	return MAP_DRAWN;
}

static __always_inline void map_pass(struct thread *thread, __u64 bytes)
{
	struct passed_calls *passed = passed_calls_of(thread);

	passed->calls++;
	if (thread->map.failed)
		passed->failed++;
	else
		passed->bytes += bytes;
}

#endif /* MEMTOLL_MAP_THINNING_BPF_H */
