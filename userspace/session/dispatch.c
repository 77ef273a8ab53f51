// SPDX-License-Identifier: GPL-2.0
#include "session/dispatch.h"

#include <glib.h>
#include <linux/types.h>
#include <stddef.h>

#include "bpf/wire/faults.h"
#include "bpf/wire/functions.h"
#include "bpf/wire/pages.h"
#include "bpf/wire/records.h"
#include "events/refined.h"
#include "host/mapped_files.h"
#include "host/swapdevice.h"
#include "ledger/advised.h"
#include "ledger/giveback.h"
#include "ledger/ledger.h"
#include "ledger/sampled.h"
#include "ledger/thresholds.h"
#include "ledger/trim_reuse.h"
#include "recording/hits.h"
#include "session/consumers.h"
#include "session/cpu_samples.h"
#include "session/fills.h"
#include "session/huge_looks.h"
#include "session/kernel_stacks.h"
#include "session/latency.h"
#include "session/past_cache.h"
#include "session/reads.h"
#include "targets/observers.h"
#include "targets/targets.h"

/* What every record begins with. */
struct head {
	uint32_t kind;
	uint32_t tgid;
};

static void on_stack(struct dispatch *dispatch, const void *record)
{
	kernel_stacks_add(dispatch->consumers->kernel_stacks, record);
}

static void on_sample(struct dispatch *dispatch, const void *record)
{
	const struct memtoll_sample *sample = record;

	cpu_samples_add(dispatch->consumers->samples, dispatch->targets, sample);
	hits_of(dispatch->consumers->hits, sample->tgid)->samples++;
}

static void on_block(struct dispatch *dispatch, const void *record)
{
	struct memtoll_block block = *(const struct memtoll_block *)record;

	trim_reuse_block(dispatch->consumers->trim_reuse, &block);
	if (sampled_block(dispatch->consumers->sampled, &block))
		return;
	ledger_block(dispatch->consumers->ledger, &block);
	thresholds_block(dispatch->consumers->thresholds, &block);
}

/* It is followed by ptrace as well, from now on. */
static void adopt(struct dispatch *dispatch, pid_t pid)
{
	if (dispatch->launched && dispatch->adopt)
		dispatch->adopt(dispatch->adopt_context, pid);
}

static void on_process(struct dispatch *dispatch, const void *record)
{
	const struct memtoll_process *process = record;
	bool held = dispatch->launched && process->held;
	struct targets *targets = dispatch->targets;

	switch (process->what) {
	case PROCESS_FORK:
		observers_forked(dispatch->observers, WITH_RECORDS, process->tgid, process->other);
		if (held)
			break;
		if (dispatch->launched && dispatch->started)
			dispatch->started(dispatch->adopt_context);
		if (process->brief) {
			targets_forked_brief(targets, process->tgid, process->other,
					     process->time_ns);
			break;
		}
		adopt(dispatch, (pid_t)process->other);
		targets_forked(targets, process->tgid, process->other, process->time_ns, false);
		break;
	case PROCESS_EXEC:
		observers_executed(dispatch->observers, WITH_RECORDS, process->tgid);
		if (held)
			break;
		if (!process->brief)
			adopt(dispatch, (pid_t)process->tgid);
		targets_exec(targets, process->tgid, process->other);
		break;
	case PROCESS_EXIT:
		observers_exited(dispatch->observers, WITH_RECORDS, process->tgid);
		if (!held)
			targets_exiting(targets, process->tgid, process->exit_code, process);
		break;
	case PROCESS_FREED:
		targets_freed(targets, process->tgid, process);
		break;
	}
}

/* A fault has only the number of its swap device; which that is follows from all numbers seen. */
static bool is_from_zram(struct dispatch *dispatch, const struct memtoll_run *run)
{
	bool known;

	if (run->fault_class != FAULT_SWAP || run->swap_type >= SWAP_TYPES)
		return false;
	dispatch->swap_types_seen[run->swap_type] = true;
	return (run->flags & RUN_MAJOR) &&
	       swap_devices_is_zram(dispatch->swap_devices, dispatch->swap_types_seen,
				    run->swap_type, &known) &&
	       known;
}

/* What the kernel side cannot know: is a file a library, a swap device zram, what code stores. */
static void on_run(struct dispatch *dispatch, const void *record)
{
	struct memtoll_run run = *(const struct memtoll_run *)record;
	const struct consumers *consumers = dispatch->consumers;
	uint64_t owner_stack = 0;
	uint8_t owner_fn = FN_NONE;

	if (run.area == AREA_FILE && mapped_files_is_library(consumers->areas, run.dev, run.inode))
		run.area = AREA_LIBRARY;
	if (is_from_zram(dispatch, &run))
		run.fault_class = FAULT_SWAP_ZRAM;
	if (!(run.flags & RUN_MEMSET) && cpu_samples_clears(consumers->samples, &run))
		run.flags |= RUN_MEMSET | RUN_FILL_ZERO;
	/* The ledger may keep a run until its block is known; giveback needs it in order. */
	ledger_block_of(consumers->ledger, &run, &owner_stack, &owner_fn);
	giveback_run(consumers->giveback, &run, owner_stack, owner_fn);
	advised_run(consumers->advised, &run);
	if (swap_devices_count(dispatch->swap_devices))
		reads_fault(consumers->reads, &run);
	fills_fault(consumers->fills, &run);
	huge_looks_fault(consumers->huge_looks, &run);
	ledger_run(consumers->ledger, &run);
}

static void on_series(struct dispatch *dispatch, const void *record)
{
	const struct memtoll_series *series = record;
	uint64_t address = series->address;
	uint32_t i;

	for (i = 0; i < series->count; i++) {
		const struct memtoll_plain_run *plain = &series->runs[i];

		on_run(dispatch,
		       &(struct memtoll_run){
			       .kind = EVENT_RUN,
			       .tgid = series->tgid,
			       .tid = series->tid,
			       .fault_class = series->fault_class,
			       .area = series->area,
			       .flags = plain->flags,
			       .address = address,
			       .pages = plain->pages,
			       .faults = plain->pages,
			       .first_ns = series->first_ns + plain->first_after_ns,
			       .last_ns = series->first_ns + plain->last_after_ns,
			       .ip = plain->ip,
			       .stack_id = plain->stack_id,
			       .inode = series->inode,
			       .dev = series->dev,
			       .file_page = series->file_page +
					    (address - series->address) / MEMTOLL_PAGE_SIZE,
		       });
		address += plain->pages * MEMTOLL_PAGE_SIZE;
	}
}

static void on_file(struct dispatch *dispatch, const void *record)
{
	mapped_files_learn(dispatch->consumers->areas, record);
}

static void on_mapping(struct dispatch *dispatch, const void *record)
{
	struct memtoll_mapping copy = *(const struct memtoll_mapping *)record;
	const struct memtoll_mapping *mapping = &copy;

	copy.in_fn = past_cache_fn(dispatch->consumers->past_cache, dispatch->targets, copy.tgid,
				   copy.in_fn, copy.stack_id);
	ledger_mapping(dispatch->consumers->ledger, mapping);
	giveback_mapping(dispatch->consumers->giveback, mapping);
	advised_mapping(dispatch->consumers->advised, mapping);
	thresholds_mapping(dispatch->consumers->thresholds, mapping);
	if (mapping->flags & MAPPING_EXEC_FILE)
		targets_changed(dispatch->targets, mapping->tgid);
}

static void on_outlier(struct dispatch *dispatch, const void *record)
{
	latency_outlier(dispatch->consumers->latency, record);
}

static void on_read(struct dispatch *dispatch, const void *record)
{
	reads_run(dispatch->consumers->reads, record);
	fills_read(dispatch->consumers->fills, record);
}

static void on_path(struct dispatch *dispatch, const void *record)
{
	reads_path(dispatch->consumers->reads, record);
}

static void on_fill(struct dispatch *dispatch, const void *record)
{
	fills_add(dispatch->consumers->fills, record);
}

/* By enum memtoll_kind. size: the least; for a series that of its head. */
static const struct {
	size_t size;
	void (*take)(struct dispatch *dispatch, const void *record);
} kinds[] = {
	[EVENT_BLOCK] = { sizeof(struct memtoll_block), on_block },
	[EVENT_RUN] = { sizeof(struct memtoll_run), on_run },
	[EVENT_MAPPING] = { sizeof(struct memtoll_mapping), on_mapping },
	[EVENT_SAMPLE] = { sizeof(struct memtoll_sample), on_sample },
	[EVENT_PROCESS] = { sizeof(struct memtoll_process), on_process },
	[EVENT_FILE] = { sizeof(struct memtoll_file), on_file },
	[EVENT_READ] = { sizeof(struct memtoll_read), on_read },
	[EVENT_PATH] = { sizeof(struct memtoll_path), on_path },
	[EVENT_OUTLIER] = { sizeof(struct memtoll_outlier), on_outlier },
	[EVENT_SERIES] = { offsetof(struct memtoll_series, runs), on_series },
	[EVENT_STACK] = { sizeof(struct memtoll_new_stack), on_stack },
	[EVENT_FILL] = { sizeof(struct memtoll_fill), on_fill },
};

/* Of a known kind, and not cut short. */
static bool is_whole(const void *record, size_t size)
{
	const struct head *head = record;
	const struct memtoll_series *series = record;

	if (size < sizeof(*head) || head->kind >= G_N_ELEMENTS(kinds) || !kinds[head->kind].take ||
	    size < kinds[head->kind].size)
		return false;
	return head->kind != EVENT_SERIES ||
	       (series->count <= SERIES_RUNS &&
		size >= sizeof(*series) - (SERIES_RUNS - series->count) * sizeof(series->runs[0]));
}

int dispatch_event(void *context, void *data, size_t size)
{
	struct dispatch *dispatch = context;
	const struct head *head = data;

	if (!is_whole(data, size)) {
		consumers_lose(dispatch->consumers, LOST_RECORDS_UNREADABLE, 1);
		return 0;
	}
	/*
	 * Not of a target: what the calibration left, or a process that was refused. Stacks are
	 * taken all the same: they have a place in the kernel's table.
	 */
	if (head->kind == EVENT_STACK || targets_find(dispatch->targets, head->tgid))
		kinds[head->kind].take(dispatch, data);
	return 0;
}
