// SPDX-License-Identifier: GPL-2.0
#include "session/slice.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <glib.h>
#include <string.h>

#include "base/hash16.h"
#include "bpf/wire/events.h"
#include "events/latency_buckets.h"
#include "events/names.h"
#include "events/sums.h"
#include "host/mapped_files.h"
#include "host/bounded.h"
#include "ledger/giveback.h"
#include "memtoll.skel.h"
#include "recording/hits.h"
#include "recording/stack_writer.h"
#include "session/cpu_samples.h"
#include "session/kernel_stacks.h"
#include "session/latency.h"
#include "session/reads.h"
#include "targets/nameless.h"

/*
 * Sweeps kept one by one, for pictures; the rest is in the sums. Of a recording of hours as many as a
 * picture can show: some 60 MB, and then 600 MB a day at most.
 */
#define RUNS_PER_SLICE 20000
#define RUNS_AT_FIRST 1000000
#define RUNS_PER_LATER_SLICE 100

/* Stacks written in one transaction. */
#define STACKS_AT_ONCE 512

struct stored_run {
	struct memtoll_run run;
	uint64_t allocated_stack;
	uint8_t allocated_fn;
};

/* Tables of sums, each with its spare. */
enum summed {
	SUMMED_CALLS,
	SUMMED_MAP_CALLS,
	SUMMED_SWAPS,
	SUMMED_WALKS,
	SUMMED_PASSES,
	SUMMED_SPARE,
	SUMMED = 2 * SUMMED_SPARE,
};

struct slicer {
	struct slicer_config config;
	GHashTable *call_places;	/* by place and CPU: a sum as of the last slice */
	GHashTable *last[SUMMED];	/* by key, likewise */
	struct memtoll_walk_sum walked;	/* of all targets, since the start */
	struct cpu_samples *samples;
	struct hit_counts *hits;
	GHashTable *stacks;		/* ids to write with this slice */
	struct kernel_stacks *kernel_stacks;
	struct stack_writer stack_writer;
	struct areas *areas;
	struct giveback *giveback;
	struct reads *reads;
	struct latency *latency;
	uint64_t lost[MEMTOLL_LOSS_COUNT];
	uint64_t unmatched_frees;
	uint64_t untracked_returns;
	uint64_t unfollowed_pages;
	GArray *runs;			/* struct stored_run, at most RUNS_PER_SLICE */
	guint runs_seen;		/* in this slice; those that are kept are any of them */
	uint64_t runs_written;
	struct nameless *nameless;
	uint64_t own_losses[MEMTOLL_LOSS_COUNT];	/* of userspace, since the last slice */
	int err;
};

static void on_run(void *context, const struct memtoll_run *run, uint64_t allocated_stack,
		   uint8_t allocated_fn);

/* What the BPF side has counted as lost since the last time. */
static void take_losses(struct slicer *slicer, uint64_t *counts)
{
	int cpus = libbpf_num_possible_cpus(), fd = bpf_map__fd(slicer->config.bpf->maps.losses);
	g_autofree uint64_t *values = g_new0(uint64_t, cpus);
	uint64_t total;
	uint32_t i;

	for (i = 0; i < MEMTOLL_LOSS_COUNT; i++) {
		counts[i] = 0;
		if (bpf_map_lookup_elem(fd, &i, values))
			continue;
		sums_add_cpus(&total, values, 1, 0, cpus);
		counts[i] = total - slicer->lost[i];
		slicer->lost[i] = total;
	}
}

struct slicer *slicer_new(const struct slicer_config *config)
{
	struct slicer *slicer = g_new0(struct slicer, 1);
	uint64_t calibrations[MEMTOLL_LOSS_COUNT];
	int i;

	slicer->config = *config;
	/* A small buffer was too small for them, and nobody wants them. */
	take_losses(slicer, calibrations);
	slicer->stack_writer.recording = config->recording;
	slicer->stack_writer.symbolizer = config->symbolizer;
	slicer->stack_writer.python = config->python;
	slicer->call_places = g_hash_table_new_full(key16_hash, key16_equal, g_free, g_free);
	for (i = 0; i < SUMMED; i++)
		slicer->last[i] = g_hash_table_new_full(key16_hash, key16_equal, g_free, g_free);
	slicer->hits = hit_counts_new();
	slicer->stacks = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	slicer->kernel_stacks = kernel_stacks_new(config->bpf);
	slicer->areas = areas_new();
	slicer->giveback = giveback_new();
	slicer->reads = reads_new(config->recording, config->bpf->maps.file_reads,
				  config->bpf->maps.file_reads_spare);
	slicer->latency = latency_new();
	slicer->nameless = nameless_new(bpf_map__fd(config->bpf->maps.stacks), config->symbolizer,
					config->targets);
	slicer->runs = g_array_new(FALSE, FALSE, sizeof(struct stored_run));
	slicer->samples = cpu_samples_new(bpf_map__fd(config->bpf->maps.stacks),
					  config->symbolizer);
	ledger_on_run(config->ledger, on_run, slicer);
	return slicer;
}

void slicer_free(struct slicer *slicer)
{
	int i;

	if (!slicer)
		return;
	g_hash_table_destroy(slicer->call_places);
	for (i = 0; i < SUMMED; i++)
		g_hash_table_destroy(slicer->last[i]);
	hit_counts_free(slicer->hits);
	g_hash_table_destroy(slicer->stacks);
	kernel_stacks_free(slicer->kernel_stacks);
	g_array_free(slicer->runs, TRUE);
	nameless_free(slicer->nameless);
	areas_free(slicer->areas);
	giveback_free(slicer->giveback);
	reads_free(slicer->reads);
	latency_free(slicer->latency);
	cpu_samples_free(slicer->samples);
	g_free(slicer);
}

void slicer_lose(struct slicer *slicer, enum memtoll_loss loss, uint64_t count)
{
	slicer->own_losses[loss] += count;
}

/* The first error stays; nothing is written after it. */
static void note(struct slicer *slicer, int err)
{
	if (err && !slicer->err)
		slicer->err = err;
}

/* Remember that this stack is referred to. Stacks of processes we do not know are not kept. */
static void want_stack(void *context, uint64_t id)
{
	struct slicer *slicer = context;

	if (id && !g_hash_table_contains(slicer->stacks, &id) &&
	    !recording_has_stack(slicer->config.recording, id))
		g_hash_table_add(slicer->stacks, g_memdup2(&id, sizeof(id)));
}

/* Likewise, where it is said who touched; under the id that is returned. */
static uint64_t want_toucher(struct slicer *slicer, pid_t pid, uint64_t id)
{
	if (!recording_has_stack(slicer->config.recording, id))
		id = nameless_as(slicer->nameless, pid, id);
	want_stack(slicer, id);
	return id;
}

/* ---- records of the ring buffer ---- */

static void on_sample(struct slicer *slicer, const struct memtoll_sample *sample)
{
	cpu_samples_add(slicer->samples, sample, watch_has_missed(slicer->config.watch));
	hits_of(slicer->hits, sample->tgid)->samples++;
}

static void on_block(struct slicer *slicer, const struct memtoll_block *told)
{
	struct memtoll_block block = *told;

	if (sampled_block(slicer->config.sampled, &block))
		return;
	ledger_block(slicer->config.ledger, &block);
	thresholds_block(slicer->config.thresholds, &block);
}

static void on_process(struct slicer *slicer, const struct memtoll_process *process)
{
	struct targets *targets = slicer->config.targets;

	switch (process->what) {
	case PROCESS_FORK:
		ledger_fork(slicer->config.ledger, process->tgid, process->other);
		giveback_restart(slicer->giveback, process->other);
		if (!slicer->config.launched)
			targets_forked(targets, process->tgid, process->other, false);
		break;
	case PROCESS_EXEC:
		ledger_exec(slicer->config.ledger, process->tgid);
		sampled_forget(slicer->config.sampled, process->tgid);
		giveback_restart(slicer->giveback, process->tgid);
		if (!slicer->config.launched)
			targets_exec(targets, process->tgid, process->other);
		break;
	case PROCESS_EXIT:
		ledger_exit(slicer->config.ledger, process->tgid);
		sampled_forget(slicer->config.sampled, process->tgid);
		giveback_restart(slicer->giveback, process->tgid);
		if (!slicer->config.launched)
			targets_exiting(targets, process->tgid, process->exit_code, process);
		break;
	}
}

/* Only a device's number comes with a fault; which that is follows from all that were met. */
static bool is_from_zram(struct slicer *slicer, const struct memtoll_run *run)
{
	bool known;

	if (run->fault_class != FAULT_SWAP || run->swap_type >= SWAP_TYPES)
		return false;
	slicer->config.swap_types_seen[run->swap_type] = true;
	return (run->flags & RUN_MAJOR) &&
	       swap_devices_is_zram(slicer->config.swap_devices, slicer->config.swap_types_seen,
				    run->swap_type, &known) && known;
}

/* What the kernel side cannot know: whether a file is a library, a swap device zram. */
static void on_fault_run(struct slicer *slicer, const struct memtoll_run *told)
{
	struct memtoll_run run = *told;
	uint64_t owner_stack = 0;
	uint8_t owner_fn = FN_NONE;

	if (run.area == AREA_FILE && areas_is_library(slicer->areas, run.dev, run.inode))
		run.area = AREA_LIBRARY;
	if (is_from_zram(slicer, &run))
		run.fault_class = FAULT_SWAP_ZRAM;
	/* The ledger may keep a run until its block is known; what was given back cannot wait. */
	ledger_block_of(slicer->config.ledger, &run, &owner_stack, &owner_fn);
	giveback_run(slicer->giveback, &run, owner_stack, owner_fn);
	if (swap_devices_count(slicer->config.swap_devices))
		reads_fault(slicer->reads, &run);
	ledger_run(slicer->config.ledger, &run);
}

static void on_series(struct slicer *slicer, const struct memtoll_series *series)
{
	uint64_t address = series->address;
	uint32_t i;

	for (i = 0; i < MIN(series->count, SERIES_RUNS); i++) {
		const struct memtoll_plain_run *plain = &series->runs[i];

		on_fault_run(slicer, &(struct memtoll_run){
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
		});
		address += plain->pages * MEMTOLL_PAGE_SIZE;
	}
}

int slicer_on_event(void *context, void *data, size_t size)
{
	struct slicer *slicer = context;
	uint32_t kind = *(uint32_t *)data, pid = ((uint32_t *)data)[1];

	(void)size;
	/* The calibration's too: they take room. */
	if (kind == EVENT_STACK) {
		kernel_stacks_told(slicer->kernel_stacks, data);
		return 0;
	}
	/* What the calibration left, or a process that was refused. */
	if (!targets_find(slicer->config.targets, pid))
		return 0;
	switch (kind) {
	case EVENT_BLOCK:
		on_block(slicer, data);
		break;
	case EVENT_RUN:
		on_fault_run(slicer, data);
		break;
	case EVENT_SERIES:
		on_series(slicer, data);
		break;
	case EVENT_FILE:
		areas_learn(slicer->areas, data);
		break;
	case EVENT_MAPPING:
		ledger_mapping(slicer->config.ledger, data);
		giveback_mapping(slicer->giveback, data);
		thresholds_mapping(slicer->config.thresholds, data);
		if (((struct memtoll_mapping *)data)->flags & MAPPING_EXEC_FILE)
			targets_changed(slicer->config.targets, pid);
		break;
	case EVENT_OUTLIER:
		latency_outlier(slicer->latency, data);
		break;
	case EVENT_SAMPLE:
		on_sample(slicer, data);
		break;
	case EVENT_READ:
		reads_run(slicer->reads, data);
		break;
	case EVENT_PATH:
		reads_path(slicer->reads, data);
		break;
	case EVENT_PROCESS:
		on_process(slicer, data);
		break;
	}
	return 0;
}

/* ---- the slice ---- */

/* Of more than fit each has the same chance: a picture shows no gap at the end of each slice. */
static void keep_run(struct slicer *slicer, const struct stored_run *run)
{
	guint most = slicer->runs_written < RUNS_AT_FIRST ? RUNS_PER_SLICE : RUNS_PER_LATER_SLICE;
	guint at = slicer->runs_seen++;

	if (slicer->runs->len < most) {
		g_array_append_val(slicer->runs, *run);
		return;
	}
	slicer_lose(slicer, LOST_RUNS_UNSTORED, 1);
	at = g_random_int_range(0, at + 1);
	if (at < most)
		g_array_index(slicer->runs, struct stored_run, at) = *run;
}

static void on_run(void *context, const struct memtoll_run *run, uint64_t allocated_stack,
		   uint8_t allocated_fn)
{
	struct stored_run stored = {
		.run = *run,
		.allocated_stack = allocated_stack,
		.allocated_fn = allocated_fn,
	};
	struct slicer *slicer = context;
	struct hits *hits = hits_of(slicer->hits, run->tgid);

	hits->faults += run->faults;
	if (!(run->flags & RUN_MAJOR))
		hits->timed += run->timed_faults + !!(run->flags & RUN_INTERRUPTED);
	keep_run(slicer, &stored);
}

/* An allocation is a call of the allocator or a mapping of the program's own. */
static const char *allocated_name(uint8_t fn)
{
	return fn == ALLOCATED_MMAP ? map_fn_name(MAP_FN_MMAP) : fn_name(fn);
}

static void write_runs(struct slicer *slicer)
{
	guint i;

	for (i = 0; i < slicer->runs->len; i++) {
		const struct stored_run *stored =
			&g_array_index(slicer->runs, struct stored_run, i);
		const struct memtoll_run *run = &stored->run;

		want_stack(slicer, stored->allocated_stack);
		note(slicer, recording_fault_run(slicer->config.recording, &(struct fault_run_fact){
			.pid = run->tgid,
			.tid = run->tid,
			.fault_class = fault_class_name(run->fault_class, run->flags & RUN_MAJOR),
			.address = run->address,
			.pages = run->pages,
			.faults = run->faults,
			.first_ns = run->first_ns,
			.last_ns = run->last_ns,
			.allocated_stack = stored->allocated_stack,
			.allocated_call = allocated_name(stored->allocated_fn),
			.touched_stack = want_toucher(slicer, run->tgid, run->stack_id),
			.area = area_name(run->area),
		}));
	}
	slicer->runs_written += slicer->runs->len;
	slicer->runs_seen = 0;
	g_array_set_size(slicer->runs, 0);
}

static void on_charge(void *context, const struct charge *charge)
{
	struct slicer *slicer = context;

	want_stack(slicer, charge->allocated_stack);
	note(slicer, recording_fault(slicer->config.recording, &(struct fault_fact){
		.pid = charge->pid,
		.fault_class = fault_class_name(charge->fault_class, charge->major),
		.allocated_stack = charge->allocated_stack,
		.allocated_call = allocated_name(charge->allocated_fn),
		.touched_stack = want_toucher(slicer, charge->pid, charge->touched_stack),
		.area = area_name(charge->area),
		.area_name = areas_path(slicer->areas, charge->dev, charge->inode),
		.in_call = fn_name(charge->in_fn),
		.in_memset = charge->memset,
		.faults = charge->faults,
		.pages = charge->pages,
		.timed_faults = charge->timed_faults,
		.timed_cpu_ns = charge->timed_cpu_ns,
		.timed_cpu_us2 = charge->timed_cpu_us2,
		.blocked_ns = charge->blocked_ns,
	}));
}

static void on_life(void *context, const struct life *life)
{
	struct slicer *slicer = context;

	want_stack(slicer, life->stack_id);
	note(slicer, recording_block(slicer->config.recording, &(struct block_fact){
		.pid = life->pid,
		.call = allocated_name(life->fn),
		.stack_id = life->stack_id,
		.made = life->made,
		.made_bytes = life->made_bytes,
		.freed = life->freed,
		.freed_bytes = life->freed_bytes,
		.never_used_bytes = life->never_used_bytes,
	}));
}

static void on_threshold(void *context, const struct threshold_fact *fact)
{
	struct slicer *slicer = context;

	want_stack(slicer, fact->stack_id);
	note(slicer, recording_threshold(slicer->config.recording, &(struct threshold_row){
		.time_ns = fact->time_ns,
		.pid = fact->pid,
		.name = threshold_name(fact->name),
		.low_bytes = fact->bounds.low,
		.high_bytes = fact->bounds.high == UINT64_MAX ? -1 : (int64_t)fact->bounds.high,
		.how = threshold_how_name(fact->how),
		.call = fn_name(fact->fn),
		.stack_id = fact->stack_id,
	}));
}

static void on_giveback(void *context, const struct giveback_sum *sum)
{
	struct slicer *slicer = context;

	want_stack(slicer, sum->gave_stack);
	want_stack(slicer, sum->got_stack);
	note(slicer, recording_giveback(slicer->config.recording, &(struct giveback_fact){
		.pid = sum->pid,
		.how = giveback_how_name(sum->how),
		.gave_call = fn_name(sum->gave_fn),
		.gave_stack = sum->gave_stack,
		.got_call = allocated_name(sum->got_fn),
		.got_stack = sum->got_stack,
		.fault_class = sum->again_pages ? fault_class_name(sum->fault_class, false) : "",
		.calls = sum->calls,
		.gave_bytes = sum->gave_pages * MEMTOLL_PAGE_SIZE,
		.largest_bytes = sum->largest_bytes,
		.span_bytes = sum->span_bytes,
		.again_faults = sum->again_faults,
		.again_bytes = sum->again_pages * MEMTOLL_PAGE_SIZE,
		.twice_bytes = sum->twice_pages * MEMTOLL_PAGE_SIZE,
	}));
}

static void on_access(void *context, const struct access *access)
{
	struct slicer *slicer = context;
	bool outside = !access->allocated_fn;

	want_stack(slicer, access->allocated_stack);
	note(slicer, recording_access(slicer->config.recording, &(struct access_fact){
		.pid = access->pid,
		.call = allocated_name(access->allocated_fn),
		.allocated_stack = access->allocated_stack,
		.area = outside ? area_name(access->area) : "",
		.area_name = areas_path(slicer->areas, access->dev, access->inode),
		.first_pages = access->first_pages,
		.first_sequential_pages = access->first_sequential_pages,
		.in_pages = access->in_pages,
		.in_sequential_pages = access->in_sequential_pages,
		.distinct_pages = access->distinct_pages,
		.max_returns = access->max_returns,
		.untracked_pages = access->untracked_pages,
	}));
}

static void on_sampled(void *context, const struct sampled_site *site)
{
	struct slicer *slicer = context;

	want_stack(slicer, site->stack_id);
	note(slicer, recording_sampled(slicer->config.recording, fn_name(site->fn), site));
}

static void on_call_sum(void *context, const void *key_data, const uint64_t *delta)
{
	struct slicer *slicer = context;
	const struct memtoll_call_key *key = key_data;
	struct call_fact fact = {
		.pid = key->tgid,
		.call = fn_name(key->fn),
		.stack_id = key->stack_id,
	};
	uint32_t latency[LATENCY_BUCKETS];

	if (!targets_find(slicer->config.targets, key->tgid) || key->fn >= FN_COUNT)
		return;
	if (key->fn == FN_NONE) {
		hits_of(slicer->hits, key->tgid)->idle +=
			((struct memtoll_call_sum *)delta)->untimed_calls;
		return;
	}
	memcpy(&fact.sum, delta, sizeof(fact.sum));
	memcpy(latency, delta + sizeof(fact.sum) / sizeof(*delta), sizeof(latency));
	fact.timed_calls = latency_calls(latency);
	fact.known_clearing = fact.timed_calls > fact.sum.foreign_calls;
	hits_of(slicer->hits, key->tgid)->calls[key->fn] +=
		fact.timed_calls + fact.sum.untimed_calls + fact.sum.nested_calls;
	want_stack(slicer, key->stack_id);
	note(slicer, recording_call(slicer->config.recording, &fact));
	note(slicer, latency_write(slicer->config.recording, key, latency));
}

static void on_map_sum(void *context, const void *key_data, const uint64_t *delta)
{
	struct slicer *slicer = context;
	const struct memtoll_map_key *key = key_data;
	struct map_call_fact fact = {
		.pid = key->tgid,
		.call = map_fn_name(key->map_fn),
		.in_call = fn_name(key->in_fn),
		.stack_id = key->stack_id,
	};

	if (!targets_find(slicer->config.targets, key->tgid))
		return;
	memcpy(&fact.sum, delta, sizeof(fact.sum));
	hits_of(slicer->hits, key->tgid)->maps += fact.sum.calls;
	want_stack(slicer, key->stack_id);
	note(slicer, recording_map_call(slicer->config.recording, &fact));
}

static void on_swap_sum(void *context, const void *key_data, const uint64_t *delta)
{
	struct slicer *slicer = context;
	const struct memtoll_swap_key *key = key_data;
	struct memtoll_swap_sum sum;

	/* 0: all who are not traced, for the check against the machine's own counters. */
	if (key->tgid && !targets_find(slicer->config.targets, key->tgid))
		return;
	memcpy(&sum, delta, sizeof(sum));
	note(slicer, recording_swap(slicer->config.recording, key->tgid, swap_what_name(key->what),
				    &sum));
}

static void on_walk_sum(void *context, const void *key_data, const uint64_t *delta)
{
	struct slicer *slicer = context;
	const struct memtoll_walk_key *key = key_data;

	if (!targets_find(slicer->config.targets, key->tgid))
		return;
	hits_of(slicer->hits, key->tgid)->walks += delta[0];
	slicer->walked.walks += delta[0];
	slicer->walked.ns += delta[1];
}

static void on_pass_sum(void *context, const void *key_data, const uint64_t *delta)
{
	struct slicer *slicer = context;
	const struct memtoll_pass_key *key = key_data;

	if (!targets_find(slicer->config.targets, key->tgid))
		return;
	hits_of(slicer->hits, key->tgid)->other_reads += delta[0];
	hits_of(slicer->hits, key->tgid)->syscalls += delta[1];
}

/* Measured, not calibrated: the mean price of a walk so far. */
static void write_walk_price(struct slicer *slicer)
{
	double mean_ns;

	if (!slicer->walked.walks)
		return;
	mean_ns = (double)slicer->walked.ns / slicer->walked.walks;
	note(slicer, recording_price(slicer->config.recording, "walk", mean_ns, 0, 0.1 * mean_ns));
}

static void on_read_sum(void *context, const struct file_read_fact *fact)
{
	struct slicer *slicer = context;

	if (!targets_find(slicer->config.targets, fact->pid))
		return;
	hits_of(slicer->hits, fact->pid)->reads += fact->sum.calls;
	want_stack(slicer, fact->stack_id);
	note(slicer, recording_file_read(slicer->config.recording, fact));
}

static void write_losses(struct slicer *slicer)
{
#define LOSS_NAME(id, name, meaning, remedy) name,
	static const char *const names[] = { MEMTOLL_LOSSES(LOSS_NAME) };
#undef LOSS_NAME
	uint64_t counts[MEMTOLL_LOSS_COUNT], unmatched, untracked, unfollowed;
	const struct targets_losses targets = targets_take_losses(slicer->config.targets);
	uint32_t i;

	take_losses(slicer, counts);
	unmatched = ledger_unmatched_frees(slicer->config.ledger);
	counts[LOST_FREES_UNMATCHED] += unmatched - slicer->unmatched_frees;
	slicer->unmatched_frees = unmatched;
	untracked = ledger_untracked_returns(slicer->config.ledger);
	counts[LOST_RETURNS_FULL] += untracked - slicer->untracked_returns;
	slicer->untracked_returns = untracked;
	unfollowed = giveback_unfollowed(slicer->giveback);
	counts[LOST_GIVEBACK_FULL] += unfollowed - slicer->unfollowed_pages;
	slicer->unfollowed_pages = unfollowed;
	counts[LOST_UNWIND_FULL] += targets.unwind_left_out;
	counts[LOST_PYTHON_UNREADABLE] += python_unreadable(slicer->config.python);
	counts[LOST_PYTHON_UNSUPPORTED] += python_unsupported(slicer->config.python);
	counts[LOST_PYTHON_UNWOVEN] += slicer->stack_writer.unwoven;
	slicer->stack_writer.unwoven = 0;
	counts[LOST_MEMORY_GIVEN_UP] += bounded_given_up();
	counts[LOST_MAPPINGS_LEFT_OUT] += targets.mappings_left_out;
	counts[LOST_MAPS_POSTPONED] += targets.maps_postponed;
	counts[LOST_LATE_ATTACH] += targets.late;
	counts[LOST_ATTACH_FAILED] += targets.attach_failures;
	for (i = 0; i < MEMTOLL_LOSS_COUNT; i++) {
		counts[i] += slicer->own_losses[i];
		slicer->own_losses[i] = 0;
		if (counts[i])
			note(slicer, recording_loss(slicer->config.recording, names[i], counts[i]));
	}
}

static void write_target(void *context, struct target *target)
{
	struct slicer *slicer = context;
	const struct process_slice_fact fact = {
		.pid = target->pid,
		.cpu_ns = target->now.cpu_ns - target->recorded.cpu_ns,
		.minor_faults = target->now.minor_faults - target->recorded.minor_faults,
		.major_faults = target->now.major_faults - target->recorded.major_faults,
		.rss_bytes = target->now.rss_bytes,
		.swap_bytes = target->now.swap_bytes,
	};

	if (!fact.cpu_ns && !fact.minor_faults && !fact.major_faults &&
	    fact.rss_bytes == target->recorded.rss_bytes &&
	    fact.swap_bytes == target->recorded.swap_bytes)
		return;
	note(slicer, recording_process_slice(slicer->config.recording, &fact));
	target->recorded = target->now;
}

static void write_stack(struct slicer *slicer, uint64_t id)
{
	struct memtoll_stack stack;

	if (bpf_map_lookup_elem(bpf_map__fd(slicer->config.bpf->maps.stacks), &id, &stack))
		return;
	note(slicer, stack_write(&slicer->stack_writer, id, &stack));
}

/*
 * Naming can take long, where files are met for the first time; what cannot wait is seen to in
 * between, and may ask for more stacks: those come with the next slice. Of many, some are committed
 * at a time, so that not all are in memory at once: the slice is complete by then but for names.
 */
static void write_stacks(struct slicer *slicer, uint64_t end_ns)
{
	guint count, i;
	g_autofree gpointer *ids = g_hash_table_get_keys_as_array(slicer->stacks, &count);

	g_hash_table_steal_all(slicer->stacks);
	python_reader_catch_up(slicer->config.python_reader);
	for (i = 0; i < count; i++) {
		write_stack(slicer, *(const uint64_t *)ids[i]);
		g_free(ids[i]);
		/* Of a slice that does not fit in the end nothing is to stay. */
		if (i % STACKS_AT_ONCE == STACKS_AT_ONCE - 1 &&
		    !recording_is_limited(slicer->config.recording))
			note(slicer, recording_slice_commit(slicer->config.recording, end_ns));
		slicer->config.meanwhile(slicer->config.meanwhile_context);
	}
}

static void name_stack(void *context, uint64_t id)
{
	struct slicer *slicer = context;

	if (!recording_has_stack(slicer->config.recording, id))
		write_stack(slicer, id);
}

/*
 * Name the stacks of a process before its image changes: afterwards its addresses mean other code.
 * Their figures wait for the slice.
 */
void slicer_name_stacks(struct slicer *slicer, pid_t pid)
{
	kernel_stacks_each(slicer->kernel_stacks, pid, name_stack, slicer);
}

/* Of a row that has not changed for a slice. 0: all who are not traced. */
static bool is_forgotten(void *context, uint32_t tgid)
{
	struct slicer *slicer = context;
	const struct target *target = targets_find(slicer->config.targets, tgid);

	return tgid && (!target || target->exited);
}

static void read_sums(struct slicer *slicer)
{
	const typeof(slicer->config.bpf->maps) *maps = &slicer->config.bpf->maps;
	const struct {
		struct bpf_map *map, *spare;
		size_t bytes;
		void (*each)(void *context, const void *key, const uint64_t *delta);
	} tables[SUMMED_SPARE] = {
		[SUMMED_CALLS] = { maps->calls, maps->calls_spare, 0, on_call_sum },
		[SUMMED_MAP_CALLS] = { maps->map_calls, maps->map_calls_spare,
				       sizeof(struct memtoll_map_sum), on_map_sum },
		[SUMMED_SWAPS] = { maps->swaps, maps->swaps_spare, sizeof(struct memtoll_swap_sum),
				   on_swap_sum },
		[SUMMED_WALKS] = { maps->walks, maps->walks_spare, sizeof(struct memtoll_walk_sum),
				   on_walk_sum },
		[SUMMED_PASSES] = { maps->passes, maps->passes_spare,
				    sizeof(struct memtoll_pass_sum), on_pass_sum },
	};
	struct sums_reader reader = { on_call_sum, is_forgotten, slicer };
	struct bpf_map *map;
	int i;

	sums_each_place(maps->call_places, slicer->call_places, &reader);
	for (i = 0; i < SUMMED; i++) {
		map = i < SUMMED_SPARE ? tables[i].map : tables[i - SUMMED_SPARE].spare;
		reader.each = tables[i % SUMMED_SPARE].each;
		if (i % SUMMED_SPARE == SUMMED_CALLS)
			sums_each_call(map, slicer->last[i], &reader);
		else
			sums_each(map, slicer->last[i],
				  tables[i % SUMMED_SPARE].bytes / sizeof(uint64_t), 0, &reader);
	}
}

/* Its last events came a slice ago, and all of them are written. */
static void forget_process(void *context, pid_t pid)
{
	struct slicer *slicer = context;

	ledger_forget(slicer->config.ledger, pid);
	giveback_restart(slicer->giveback, pid);
	thresholds_forget(slicer->config.thresholds, pid);
	symbolizer_forget(slicer->config.symbolizer, pid);
	python_forget_process(slicer->config.python, pid);
}

static void forget_stack(void *context, uint64_t id)
{
	struct slicer *slicer = context;

	cpu_samples_forget_stack(slicer->samples, id);
	recording_forget_stack(slicer->config.recording, id);
}

/*
 * All facts of a slice are written here, in one short transaction (names of stacks may follow in
 * more): should the tracer be killed, it is almost never in the middle of one.
 */
int slicer_commit(struct slicer *slicer, uint64_t start_ns, uint64_t end_ns)
{
	note(slicer, recording_slice_begin(slicer->config.recording, start_ns));
	ledger_drain(slicer->config.ledger, on_charge, on_life, slicer);
	ledger_each_access(slicer->config.ledger, on_access, slicer);
	giveback_drain(slicer->giveback, on_giveback, slicer);
	targets_read_thresholds(slicer->config.targets);
	thresholds_drain(slicer->config.thresholds, on_threshold, slicer);
	write_runs(slicer);
	read_sums(slicer);
	note(slicer, reads_commit(slicer->reads, on_read_sum, slicer));
	write_walk_price(slicer);
	targets_each(slicer->config.targets, write_target, slicer);
	note(slicer, cpu_samples_commit(slicer->samples, slicer->config.recording, want_stack,
					slicer));
	note(slicer, hit_counts_write(slicer->hits, slicer->config.recording,
				      watch_syscalls_scale(slicer->config.watch)));
	note(slicer, watch_write(slicer->config.watch));
	note(slicer, latency_commit(slicer->latency, slicer->config.recording, slicer->config.bpf,
				    want_stack, slicer));
	sampled_drain(slicer->config.sampled, on_sampled, slicer);
	note(slicer, targets_record_allocators(slicer->config.targets));
	write_losses(slicer);
	write_stacks(slicer, end_ns);
	nameless_end_slice(slicer->nameless);
	targets_forget_dead(slicer->config.targets, forget_process, slicer);
	kernel_stacks_drop(slicer->kernel_stacks, slicer->config.targets, forget_stack, slicer);
	/* What came to be missed meanwhile. */
	write_losses(slicer);
	note(slicer, recording_slice_commit(slicer->config.recording, end_ns));
	return slicer->err;
}
