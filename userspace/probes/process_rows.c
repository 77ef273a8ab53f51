// SPDX-License-Identifier: GPL-2.0
#include "probes/process_rows.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "bpf/wire/targets.h"
#include "memtoll.skel.h"

/* So late the row may be there, where this process gets no CPU. */
#define LATE_NS 100000000ULL

/* The BPF side, which makes rows for children, adds to it, too. */
static void count(struct memtoll_bpf *bpf, pid_t pid, int more)
{
	__sync_fetch_and_add(&bpf->bss->process_filter[pid & (PROCESS_FILTER_SIZE - 1)], more);
}

int process_row_put(struct memtoll_bpf *bpf, pid_t pid, const struct memtoll_target *row,
		    bool exec_pending)
{
	const struct memtoll_target_state state = {
		.exec_pending = exec_pending,
		.begun_ns = exec_pending ? 0 : now_ns() + LATE_NS,
	};
	int fd = bpf_map__fd(bpf->maps.processes);
	uint32_t key = pid;
	int err;

	if (bpf_map_update_elem(bpf_map__fd(bpf->maps.process_states), &key, &state, BPF_ANY))
		return -errno;
	/* First: a process that has a row is never filtered out. */
	count(bpf, pid, 1);
	if (!bpf_map_update_elem(fd, &key, row, BPF_NOEXIST))
		return 0;
	count(bpf, pid, -1);
	if (!bpf_map_update_elem(fd, &key, row, BPF_EXIST))
		return 0;
	err = -errno;
	bpf_map_delete_elem(bpf_map__fd(bpf->maps.process_states), &key);
	return err;
}

bool process_row_lives(struct memtoll_bpf *bpf, pid_t pid, struct memtoll_target_state *state)
{
	uint32_t key = pid;

	if (bpf_map_lookup_elem(bpf_map__fd(bpf->maps.process_states), &key, state)) {
		memset(state, 0, sizeof(*state));
		return false;
	}
	return !state->ended;
}

bool process_row_exists(struct memtoll_bpf *bpf, pid_t pid)
{
	struct memtoll_target_state state;
	uint32_t key = pid;

	return !bpf_map_lookup_elem(bpf_map__fd(bpf->maps.process_states), &key, &state);
}

void process_row_remove(struct memtoll_bpf *bpf, pid_t pid)
{
	uint32_t key = pid;

	if (!bpf_map_delete_elem(bpf_map__fd(bpf->maps.processes), &key))
		count(bpf, pid, -1);
	bpf_map_delete_elem(bpf_map__fd(bpf->maps.process_states), &key);
}
