// SPDX-License-Identifier: GPL-2.0
/* processes.bpf.c: which processes are traced. */
#include "state/processes.bpf.h"

struct processes_map processes SEC(".maps");

struct process_states_map process_states SEC(".maps");

volatile __u32 briefs_seen = 0;

__u32 process_filter[PROCESS_FILTER_SIZE];

int in_memset(const struct memtoll_target *process, __u64 ip)
{
	__u32 i;

	if (!process)
		return 0;
	for (i = 0; i < MEMTOLL_MEMSET_RANGES; i++) {
		if (i >= process->memset_count)
			break;
		if (ip >= process->memset[i].start && ip < process->memset[i].end)
			return 1;
	}
	return 0;
}

int in_memcpy(const struct memtoll_target *process, __u64 ip)
{
	__u32 i;

	if (!process)
		return 0;
	for (i = 0; i < MEMTOLL_MEMSET_RANGES; i++) {
		if (i >= process->memcpy_count)
			break;
		if (ip >= process->memcpy[i].start && ip < process->memcpy[i].end)
			return 1;
	}
	return 0;
}
