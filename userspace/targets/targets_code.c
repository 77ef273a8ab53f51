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

static void fill_memory_code(pid_t pid, const struct maps *maps, struct memtoll_target *state)
{
	struct code_range ranges[2 * MEMTOLL_MEMSET_RANGES];
	ssize_t count = memory_code(pid, maps, ranges, G_N_ELEMENTS(ranges)), i;

	state->memset_count = 0;
	state->memcpy_count = 0;
	for (i = 0; i < count; i++) {
		struct memtoll_range *to = ranges[i].copies ? state->memcpy : state->memset;
		uint32_t *known = ranges[i].copies ? &state->memcpy_count : &state->memset_count;

		if (*known < MEMTOLL_MEMSET_RANGES)
			to[(*known)++] = (struct memtoll_range){ ranges[i].start, ranges[i].end };
	}
}

void targets_publish_code(struct targets *targets, const struct followed *followed,
			  const struct maps *maps)
{
	pid_t pid = followed->target.pid;
	int fd = bpf_map__fd(targets->config.bpf->maps.processes);
	struct memtoll_python_offsets python;
	struct memtoll_target state, code;
	uint32_t key = pid, table = unwinder_show(targets->unwinder, pid, maps);
	bool has_python = python_show(targets->config.python, pid, maps, &python);

	fill_memory_code(pid, maps, &code);
	/* Last: the BPF side clears the row when the process calls exec. */
	if (bpf_map_lookup_elem(fd, &key, &state))
		return;
	state.unwind_table = table;
	state.brief = 0;
	state.memset_count = code.memset_count;
	memcpy(state.memset, code.memset, sizeof(state.memset));
	state.memcpy_count = code.memcpy_count;
	memcpy(state.memcpy, code.memcpy, sizeof(state.memcpy));
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

void targets_show_generated(struct targets *targets, pid_t pid, uint64_t base, const GArray *rows)
{
	struct followed *followed = followed_get(targets, pid);
	struct maps maps = {};

	if (!followed || followed->target.exited || targets->detached ||
	    unwinder_generated(targets->unwinder, pid, base,
			       (const struct memtoll_unwind_row *)rows->data, rows->len))
		return;
	followed_read_maps(targets, followed, &maps);
	targets_publish_code(targets, followed, &maps);
	maps_free(&maps);
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
