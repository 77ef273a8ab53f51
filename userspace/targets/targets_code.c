// SPDX-License-Identifier: GPL-2.0
/* What the BPF side knows of a process's code; the rest of the targets is in targets.c. */
#include "targets/targets_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "bpf/wire/functions.h"
#include "bpf/wire/python_offsets.h"
#include "bpf/wire/targets.h"
#include "host/proc.h"
#include "memtoll.skel.h"
#include "unwind/unwind_load.h"

/* None where the allocator is not probed at all: then memset counts as memset also in calloc. */
static void fill_callocs(const struct targets *targets, const struct followed *followed,
			 struct memtoll_target *state)
{
	size_t i;

	for (i = 0; i < MEMTOLL_CALLOCS; i++)
		state->calloc[i] = targets->config.uprobes && i < followed->callocs.count ?
					   followed->callocs.address[i] :
					   0;
}

void targets_publish_code(struct targets *targets, const struct followed *followed,
			  const struct maps *maps)
{
	pid_t pid = followed->target.pid;
	int fd = bpf_map__fd(targets->config.bpf->maps.processes);
	struct code_range ranges[MEMTOLL_MEMSET_RANGES];
	struct memtoll_python_offsets python;
	struct memtoll_target state;
	uint32_t key = pid, table = unwinder_show(targets->unwinder, pid, maps);
	ssize_t count = memset_ranges(pid, maps, ranges, MEMTOLL_MEMSET_RANGES), i;
	bool has_python = python_show(targets->config.python, pid, maps, &python);

	/* Last: the BPF side clears the row when the process calls exec. */
	if (bpf_map_lookup_elem(fd, &key, &state))
		return;
	state.unwind_table = table;
	for (i = 0; i < count; i++) {
		state.memset[i].start = ranges[i].start;
		state.memset[i].end = ranges[i].end;
	}
	state.memset_count = MAX(count, 0);
	if (has_python) {
		state.python = python;
		targets->config.bpf->bss->python_seen = 1;
	}
	fill_callocs(targets, followed, &state);
	bpf_map_update_elem(fd, &key, &state, BPF_EXIST);
}

void targets_publish_table(struct targets *targets, pid_t pid, uint32_t table)
{
	int fd = bpf_map__fd(targets->config.bpf->maps.processes);
	struct memtoll_target state;
	uint32_t key = pid;

	/* One that has called exec since has none, and waits for its own. */
	if (bpf_map_lookup_elem(fd, &key, &state) || !state.unwind_table ||
	    state.unwind_table == table)
		return;
	state.unwind_table = table;
	bpf_map_update_elem(fd, &key, &state, BPF_EXIST);
}

void callocs_add(struct callocs *callocs, const struct allocator_module *module,
		 const struct mapping *mapping)
{
	size_t i;

	for (i = 0; i < module->point_count && callocs->count < MEMTOLL_CALLOCS; i++) {
		uint64_t offset = module->points[i].symbol_offset - mapping->offset;

		if (module->points[i].fn == FN_CALLOC && offset < mapping->end - mapping->start)
			callocs->address[callocs->count++] = mapping->start + offset;
	}
}

void targets_publish_callocs(struct targets *targets, const struct followed *followed)
{
	int fd = bpf_map__fd(targets->config.bpf->maps.processes);
	uint32_t key = followed->target.pid;
	struct memtoll_target state, before;

	if (bpf_map_lookup_elem(fd, &key, &before))
		return;
	state = before;
	fill_callocs(targets, followed, &state);
	if (memcmp(state.calloc, before.calloc, sizeof(state.calloc)))
		bpf_map_update_elem(fd, &key, &state, BPF_EXIST);
}
