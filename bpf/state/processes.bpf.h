/* SPDX-License-Identifier: GPL-2.0 */
/* processes.bpf.h: which processes are traced, and what userspace has found in them. */
#ifndef MEMTOLL_PROCESSES_BPF_H
#define MEMTOLL_PROCESSES_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/targets.h"

struct processes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct memtoll_target);
};
extern struct processes_map processes SEC(".maps");

struct process_states_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct memtoll_target_state);
};
extern struct process_states_map process_states SEC(".maps");

/*
 * Counting filter over the numbers of traced processes, by their lowest bits: 0 proves that one is
 * not traced. Tracepoints run for every process of the machine, and nearly all others are done with
 * this word, before a helper is called or a map looked up, which would be most of what they pay.
 * Raised before a row is there and lowered after it has gone, so that it is never too low.
 */
extern __u32 process_filter[PROCESS_FILTER_SIZE];

static __always_inline bool may_be_traced(__u32 tgid)
{
	return process_filter[tgid & (PROCESS_FILTER_SIZE - 1)];
}

/* Userspace does the same, for those that it adds: process_rows.c. */
static __always_inline void process_filter_add(__u32 tgid, int more)
{
	__sync_fetch_and_add(&process_filter[tgid & (PROCESS_FILTER_SIZE - 1)], more);
}

/* Whether an instruction belongs to memset or bzero. */
int in_memset(const struct memtoll_target *process, __u64 ip);
/* ... to memcpy or memmove. */
int in_memcpy(const struct memtoll_target *process, __u64 ip);

static __always_inline struct memtoll_target *process_get(__u32 tgid)
{
	return may_be_traced(tgid) ? bpf_map_lookup_elem(&processes, &tgid) : NULL;
}

/* NULL: it is not traced. */
static __always_inline struct memtoll_target_state *process_state_get(__u32 tgid)
{
	return may_be_traced(tgid) ? bpf_map_lookup_elem(&process_states, &tgid) : NULL;
}

/* Some process was brief; most recordings see none. */
extern volatile __u32 briefs_seen;

/*
 * Nobody has looked at its code, and will not if it ends at once: its stacks would be addresses, of
 * that process alone.
 */
static __always_inline bool process_is_nameless(__u32 tgid)
{
	const struct memtoll_target *process = briefs_seen ? process_get(tgid) : NULL;

	return process && process->brief && !process->unwind_table;
}

#endif /* MEMTOLL_PROCESSES_BPF_H */
