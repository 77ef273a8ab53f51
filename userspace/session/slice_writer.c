// SPDX-License-Identifier: GPL-2.0
#include "session/slice_writer.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <glib.h>
#include <string.h>

#include "base/hash.h"
#include "bpf/wire/functions.h"
#include "bpf/wire/pages.h"
#include "bpf/wire/records.h"
#include "bpf/wire/stacks.h"
#include "bpf/wire/sums.h"
#include "budget/budget_executor.h"
#include "events/latency_buckets.h"
#include "events/names.h"
#include "events/sums.h"
#include "host/timed_call.h"
#include "host/mapped_files.h"
#include "ledger/giveback.h"
#include "ledger/ledger.h"
#include "ledger/sampled.h"
#include "ledger/thresholds.h"
#include "memtoll.skel.h"
#include "python/python_reader.h"
#include "recording/hits.h"
#include "recording/stack_writer.h"
#include "session/advised_writer.h"
#include "session/consumers.h"
#include "session/cpu_samples.h"
#include "session/drops.h"
#include "session/fills.h"
#include "session/handlers.h"
#include "session/huge_looks.h"
#include "session/jvm_names.h"
#include "session/kernel_stacks.h"
#include "session/latency.h"
#include "session/past_cache.h"
#include "session/kept_runs.h"
#include "session/reads.h"
#include "session/shared_sites.h"
#include "targets/nameless.h"
#include "targets/targets.h"

/* Stacks written in one transaction. */
#define STACKS_AT_ONCE 512

/* Tables of sums, per CPU, and those for all. */
enum summed {
	SUMMED_CALLS,
	SUMMED_MAP_CALLS,
	SUMMED_SWAPS,
	SUMMED_WALKS,
	SUMMED_PASSES,
	SUMMED_DROPS,
	SUMMED_WAITS,
	SUMMED_SHARED,
	SUMMED = 2 * SUMMED_SHARED,
};

struct slice_writer {
	struct slice_writer_config config;
	struct consumers *consumers;
	GHashTable *call_places;	/* by place and CPU: a sum as of the last slice */
	GHashTable *last[SUMMED];	/* by key: a sum as of the last slice */
	struct memtoll_walk_sum walked; /* of all targets, since the start */
	GHashTable *stacks;		/* ids to write with this slice */
	struct shared_sites *sites;
	struct stack_writer stack_writer;
	uint64_t lost[MEMTOLL_LOSS_COUNT]; /* in the kernel, as of the last slice */
	uint64_t unmatched_frees;
	uint64_t untracked_returns;
	uint64_t unfollowed_pages;
	struct kept_runs *runs;
	struct nameless *nameless;
	int err;
};

static void on_run(void *context, const struct memtoll_run *run, uint64_t allocated_stack,
		   uint8_t allocated_fn);

/* What the BPF side has counted as lost since the last time. */
static void take_losses(struct slice_writer *writer, uint64_t *counts)
{
	int cpus = libbpf_num_possible_cpus(), fd = bpf_map__fd(writer->config.bpf->maps.losses);
	g_autofree uint64_t *values = g_new0(uint64_t, cpus);
	uint64_t total;
	uint32_t i;

	for (i = 0; i < MEMTOLL_LOSS_COUNT; i++) {
		counts[i] = 0;
		if (bpf_map_lookup_elem(fd, &i, values))
			continue;
		sums_add_cpus(&total, values, 1, 0, cpus);
		counts[i] = total - writer->lost[i];
		writer->lost[i] = total;
	}
}

struct slice_writer *slice_writer_new(const struct slice_writer_config *config)
{
	struct slice_writer *writer = g_new0(struct slice_writer, 1);
	uint64_t of_calibration[MEMTOLL_LOSS_COUNT];
	int i;

	writer->config = *config;
	writer->consumers = config->consumers;
	take_losses(writer, of_calibration); /* they belong to no slice */
	writer->stack_writer.recording = config->recording;
	writer->stack_writer.symbolizer = config->symbolizer;
	writer->stack_writer.python = config->python;
	writer->call_places = g_hash_table_new_full(key16_hash, key16_equal, g_free, g_free);
	for (i = 0; i < SUMMED; i++)
		writer->last[i] = g_hash_table_new_full(key16_hash, key16_equal, g_free, g_free);
	writer->stacks = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	writer->sites = shared_sites_new(bpf_map__fd(config->bpf->maps.stacks));
	writer->nameless = nameless_new(bpf_map__fd(config->bpf->maps.stacks), config->symbolizer,
					config->targets);
	writer->runs = kept_runs_new();
	ledger_on_run(config->consumers->ledger, on_run, writer);
	return writer;
}

void slice_writer_free(struct slice_writer *writer)
{
	int i;

	if (!writer)
		return;
	g_hash_table_destroy(writer->call_places);
	for (i = 0; i < SUMMED; i++)
		g_hash_table_destroy(writer->last[i]);
	g_hash_table_destroy(writer->stacks);
	shared_sites_free(writer->sites);
	kept_runs_free(writer->runs);
	nameless_free(writer->nameless);
	g_free(writer);
}

static void keep_first_error(struct slice_writer *writer, int err)
{
	if (err && !writer->err)
		writer->err = err;
}

/* Remember that this stack is referred to. Stacks of processes we do not know are not kept. */
static void want_stack(void *context, uint64_t id)
{
	struct slice_writer *writer = context;

	if (id && !g_hash_table_contains(writer->stacks, &id) &&
	    !recording_has_stack(writer->config.recording, id))
		g_hash_table_add(writer->stacks, g_memdup2(&id, sizeof(id)));
}

/* Of code that touched memory, or mapped it, under the id that is returned: see nameless.h. */
static uint64_t want_toucher(struct slice_writer *writer, pid_t pid, uint64_t id)
{
	if (!recording_has_stack(writer->config.recording, id))
		id = nameless_as(writer->nameless, pid, id);
	want_stack(writer, id);
	return id;
}

static void on_run(void *context, const struct memtoll_run *run, uint64_t allocated_stack,
		   uint8_t allocated_fn)
{
	const struct kept_run kept = {
		.run = *run,
		.allocated_stack = allocated_stack,
		.allocated_fn = allocated_fn,
	};
	struct slice_writer *writer = context;
	struct hits *hits = hits_of(writer->consumers->hits, run->tgid);
	const struct target *target = targets_find(writer->config.targets, (pid_t)run->tgid);
	bool rest = writer->config.bpf->bss->faults_rest == FAULTS_REST; /* and meet no probe */

	if (!(run->flags & RUN_POPULATED))
		hits->faults += run->faults + (rest ? 0 : run->passed);
	if (!(run->flags & (RUN_MAJOR | RUN_POPULATED)))
		hits->timed += run->timed_faults + !!(run->flags & RUN_INTERRUPTED);
	if (target && target->brief) /* no picture has room for those of a storm */
		return;
	if (!kept_runs_add(writer->runs, &kept))
		consumers_lose(writer->consumers, LOST_RUNS_UNSTORED, 1);
}

/* An allocation is a call of the allocator or a mapping of the program's own. */
static const char *allocated_name(uint8_t fn)
{
	return fn == ALLOCATED_MMAP ? map_fn_name(MAP_FN_MMAP) : fn_name(fn);
}

static void write_run(void *context, const struct kept_run *kept)
{
	struct slice_writer *writer = context;
	const struct memtoll_run *run = &kept->run;
	const struct fault_run_fact fact = {
		.pid = run->tgid,
		.tid = run->tid,
		.fault_class = fault_class_name(run->fault_class, run->flags & RUN_MAJOR),
		.address = run->address,
		.pages = run->pages,
		.faults = run->faults,
		.first_ns = run->first_ns,
		.last_ns = run->last_ns,
		.allocated_stack = kept->allocated_stack,
		.allocated_call = allocated_name(kept->allocated_fn),
		.touched_stack = want_toucher(writer, run->tgid, run->stack_id),
		.area = area_name(run->area),
	};

	want_stack(writer, kept->allocated_stack);
	keep_first_error(writer, recording_fault_run(writer->config.recording, &fact));
}

static void on_charge(void *context, const struct charge *charge)
{
	struct slice_writer *writer = context;
	const struct fault_fact fact = {
		.pid = charge->pid,
		.fault_class = fault_class_name(charge->fault_class, charge->major),
		.allocated_stack = charge->allocated_stack,
		.allocated_call = allocated_name(charge->allocated_fn),
		.touched_stack = want_toucher(writer, charge->pid, charge->touched_stack),
		.area = area_name(charge->area),
		.area_name =
			mapped_files_path(writer->consumers->areas, charge->dev, charge->inode),
		.in_call = fn_name(charge->in_fn),
		.in_memset = charge->memset,
		.faults = charge->faults,
		.pages = charge->pages,
		.timed_faults = charge->timed_faults,
		.timed_cpu_ns = charge->timed_cpu_ns,
		.timed_cpu_us2 = charge->timed_cpu_us2,
		.blocked_ns = charge->blocked_ns,
	};

	want_stack(writer, charge->allocated_stack);
	keep_first_error(writer, recording_fault(writer->config.recording, &fact));
}

static void on_life(void *context, const struct life *life)
{
	struct slice_writer *writer = context;
	const struct block_fact fact = {
		.pid = life->pid,
		.call = allocated_name(life->fn),
		.stack_id = life->stack_id,
		.made = life->made,
		.made_bytes = life->made_bytes,
		.freed = life->freed,
		.freed_bytes = life->freed_bytes,
		.never_used_bytes = life->never_used_bytes,
	};

	want_stack(writer, life->stack_id);
	keep_first_error(writer, recording_block(writer->config.recording, &fact));
}

static void on_threshold(void *context, const struct threshold_fact *fact)
{
	struct slice_writer *writer = context;
	const struct threshold_row row = {
		.time_ns = fact->time_ns,
		.pid = fact->pid,
		.name = threshold_name(fact->name),
		.low_bytes = fact->bounds.low,
		.high_bytes = fact->bounds.high == UINT64_MAX ? -1 : (int64_t)fact->bounds.high,
		.how = threshold_how_name(fact->how),
		.call = fn_name(fact->fn),
		.stack_id = fact->stack_id,
	};

	want_stack(writer, fact->stack_id);
	keep_first_error(writer, recording_threshold(writer->config.recording, &row));
}

static void on_giveback(void *context, const struct giveback_sum *sum)
{
	struct slice_writer *writer = context;
	const struct giveback_fact fact = {
		.pid = sum->pid,
		.how = giveback_how_name(sum->how),
		.gave_call = fn_name(sum->gave_fn),
		.gave_stack = sum->gave_stack,
		.got_call = allocated_name(sum->got_fn),
		.got_stack = sum->got_stack,
		.fault_class = sum->again_pages ? fault_class_name(sum->fault_class, false) : "",
		.calls = sum->calls,
		.thread_calls = sum->thread_calls,
		.gave_bytes = sum->gave_pages * MEMTOLL_PAGE_SIZE,
		.largest_bytes = sum->largest_bytes,
		.span_bytes = sum->span_bytes,
		.again_faults = sum->again_faults,
		.again_bytes = sum->again_pages * MEMTOLL_PAGE_SIZE,
		.twice_bytes = sum->twice_pages * MEMTOLL_PAGE_SIZE,
	};

	want_stack(writer, sum->gave_stack);
	want_stack(writer, sum->got_stack);
	keep_first_error(writer, recording_giveback(writer->config.recording, &fact));
}

static void on_access(void *context, const struct access *access)
{
	struct slice_writer *writer = context;
	bool outside = !access->allocated_fn || access->area == AREA_SHARED;
	const struct access_fact fact = {
		.pid = access->pid,
		.call = allocated_name(access->allocated_fn),
		.allocated_stack = access->allocated_stack,
		.area = outside ? area_name(access->area) : "",
		.area_name =
			mapped_files_path(writer->consumers->areas, access->dev, access->inode),
		.first_pages = access->first_pages,
		.first_sequential_pages = access->first_sequential_pages,
		.in_pages = access->in_pages,
		.in_sequential_pages = access->in_sequential_pages,
		.distinct_pages = access->distinct_pages,
		.max_returns = access->max_returns,
		.untracked_pages = access->untracked_pages,
	};

	want_stack(writer, access->allocated_stack);
	keep_first_error(writer, recording_access(writer->config.recording, &fact));
}

static void on_sampled(void *context, const struct sampled_site *site)
{
	struct slice_writer *writer = context;

	want_stack(writer, site->stack_id);
	keep_first_error(writer,
			 recording_sampled(writer->config.recording, fn_name(site->fn), site));
}

static void on_call_sum(void *context, const void *key_data, const uint64_t *delta)
{
	struct slice_writer *writer = context;
	struct memtoll_call_key key = *(const struct memtoll_call_key *)key_data;
	struct call_fact fact = { .pid = key.tgid, .call = fn_name(key.fn) };
	uint32_t latency[LATENCY_BUCKETS];

	if (!targets_find(writer->config.targets, key.tgid) || key.fn >= FN_COUNT)
		return;
	if (key.fn == FN_NONE) {
		hits_of(writer->consumers->hits, key.tgid)->idle +=
			((struct memtoll_call_sum *)delta)->untimed_calls;
		return;
	}
	memcpy(&fact.sum, delta, sizeof(fact.sum));
	memcpy(latency, delta + sizeof(fact.sum) / sizeof(*delta), sizeof(latency));
	fact.timed_calls = latency_calls(latency);
	fact.known_clearing = fact.timed_calls > fact.sum.foreign_calls;
	hits_of(writer->consumers->hits, key.tgid)->calls[key.fn] +=
		fact.timed_calls + fact.sum.untimed_calls + fact.sum.nested_calls;
	cpu_samples_called(writer->consumers->samples, key.fn, key.stack_id);
	budget_called(writer->config.budget, key.tgid);
	key.stack_id = fact.stack_id = shared_sites_get(writer->sites, key.stack_id);
	want_stack(writer, key.stack_id);
	keep_first_error(writer, recording_call(writer->config.recording, &fact));
	keep_first_error(writer, latency_write(writer->config.recording, &key, latency));
}

static void on_map_sum(void *context, const void *key_data, const uint64_t *delta)
{
	struct slice_writer *writer = context;
	const struct memtoll_map_key *key = key_data;
	struct map_call_fact fact =
		past_cache_map_call(writer->consumers->past_cache, writer->config.targets, key);

	if (!targets_find(writer->config.targets, key->tgid))
		return;
	memcpy(&fact.sum, delta, sizeof(fact.sum));
	hits_of(writer->consumers->hits, key->tgid)->maps += fact.sum.calls;
	fact.stack_id = want_toucher(writer, key->tgid, key->stack_id);
	keep_first_error(writer, recording_map_call(writer->config.recording, &fact));
}

static void on_swap_sum(void *context, const void *key_data, const uint64_t *delta)
{
	struct slice_writer *writer = context;
	const struct memtoll_swap_key *key = key_data;
	struct memtoll_swap_sum sum;

	/* 0: all processes not traced, for the check against the machine's own counters. */
	if (key->tgid && !targets_find(writer->config.targets, key->tgid))
		return;
	memcpy(&sum, delta, sizeof(sum));
	want_stack(writer, key->stack_id);
	keep_first_error(writer, recording_swap(writer->config.recording, key->tgid,
						swap_what_name(key->what), key->stack_id, &sum));
}

static void on_walk_sum(void *context, const void *key_data, const uint64_t *delta)
{
	struct slice_writer *writer = context;
	const struct memtoll_walk_key *key = key_data;

	if (!targets_find(writer->config.targets, key->tgid))
		return;
	hits_of(writer->consumers->hits, key->tgid)->walks += delta[0];
	writer->walked.walks += delta[0];
	writer->walked.ns += delta[1];
}

static void on_pass_sum(void *context, const void *key_data, const uint64_t *delta)
{
	struct slice_writer *writer = context;
	pid_t pid = ((const struct memtoll_pass_key *)key_data)->tgid;

	if (targets_find(writer->config.targets, pid))
		hits_pass(hits_of(writer->consumers->hits, pid), delta);
}

static void on_drop_sum(void *context, const void *key, const uint64_t *delta)
{
	struct slice_writer *writer = context;

	want_stack(writer, drops_stack(key));
	keep_first_error(writer, drops_write(writer->config.recording, writer->config.bpf,
					     writer->config.targets, key, *delta));
}

static void on_waits(void *context, const void *key, const uint64_t *delta)
{
	struct slice_writer *writer = context;

	want_stack(writer, handlers_stack(key));
	keep_first_error(writer, handlers_write(writer->config.recording, writer->config.bpf,
						writer->config.targets, key,
						(const struct memtoll_answer *)delta));
}

/* Measured, not calibrated: the mean price of a walk so far. */
static void write_walk_price(struct slice_writer *writer)
{
	double mean_ns = (double)writer->walked.ns / MAX(writer->walked.walks, 1);

	if (writer->walked.walks)
		keep_first_error(writer, recording_price(writer->config.recording, "walk", mean_ns,
							 0, 0.1 * mean_ns));
}

static void on_read_sum(void *context, const struct file_read_fact *fact)
{
	struct slice_writer *writer = context;

	if (!targets_find(writer->config.targets, fact->pid))
		return;
	hits_of(writer->consumers->hits, fact->pid)->reads += fact->sum.calls - fact->sum.rested;
	want_stack(writer, fact->stack_id);
	keep_first_error(writer, recording_file_read(writer->config.recording, fact));
}

static void write_losses(struct slice_writer *writer)
{
#define LOSS_NAME(id, name, meaning, remedy) name,
	static const char *const names[] = { MEMTOLL_LOSSES(LOSS_NAME) };
#undef LOSS_NAME
	uint64_t counts[MEMTOLL_LOSS_COUNT], unmatched, untracked, unfollowed;
	const struct targets_losses targets = targets_take_losses(writer->config.targets);
	uint32_t i;

	take_losses(writer, counts);
	unmatched = ledger_unmatched_frees(writer->consumers->ledger);
	counts[LOST_FREES_UNMATCHED] += unmatched - writer->unmatched_frees;
	writer->unmatched_frees = unmatched;
	untracked = ledger_untracked_returns(writer->consumers->ledger);
	counts[LOST_RETURNS_FULL] += untracked - writer->untracked_returns;
	writer->untracked_returns = untracked;
	unfollowed = giveback_unfollowed(writer->consumers->giveback);
	counts[LOST_GIVEBACK_FULL] += unfollowed - writer->unfollowed_pages;
	writer->unfollowed_pages = unfollowed;
	counts[LOST_UNWIND_FULL] += targets.unwind_left_out;
	counts[LOST_PYTHON_UNREADABLE] += python_unreadable(writer->config.python);
	counts[LOST_PYTHON_UNSUPPORTED] += python_unsupported(writer->config.python);
	counts[LOST_PYTHON_UNWOVEN] += writer->stack_writer.unwoven;
	writer->stack_writer.unwoven = 0;
	counts[LOST_MEMORY_GIVEN_UP] += timed_calls_given_up();
	counts[LOST_MAPPINGS_LEFT_OUT] += targets.mappings_left_out;
	counts[LOST_MAPS_POSTPONED] += targets.maps_postponed;
	counts[LOST_LATE_ATTACH] += targets.late;
	counts[LOST_BRIEF] += targets.brief;
	counts[LOST_PIDS_REUSED] += targets.pids_reused;
	counts[LOST_ATTACH_FAILED] += targets.attach_failures;
	for (i = 0; i < MEMTOLL_LOSS_COUNT; i++) {
		counts[i] += writer->consumers->lost[i];
		writer->consumers->lost[i] = 0;
		if (counts[i])
			keep_first_error(writer, recording_loss(writer->config.recording, names[i],
								counts[i]));
	}
}

static void write_target(void *context, struct target *target)
{
	struct slice_writer *writer = context;
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
	keep_first_error(writer, recording_process_slice(writer->config.recording, &fact));
	target->recorded = target->now;
}

static void write_stack(struct slice_writer *writer, uint64_t id)
{
	struct memtoll_stack stack;

	if (!shared_sites_stack(writer->sites, id, &stack))
		return;
	keep_first_error(writer, stack_write(&writer->stack_writer, id, &stack));
	if (writer->stack_writer.in_unknown && writer->config.jvm_names)
		jvm_names_want(writer->config.jvm_names, stack.tgid);
}

/*
 * Naming may take long: what cannot wait is done in between; stacks it asks for come with the next
 * slice. Of many, some are committed at a time: only names are missing then.
 */
static void write_stacks(struct slice_writer *writer, uint64_t end_ns)
{
	guint count, i;
	g_autofree gpointer *ids = g_hash_table_get_keys_as_array(writer->stacks, &count);

	g_hash_table_steal_all(writer->stacks);
	python_reader_catch_up(writer->config.python_reader);
	for (i = 0; i < count; i++) {
		write_stack(writer, *(const uint64_t *)ids[i]);
		g_free(ids[i]);
		/* With a size limit a slice is written whole or not at all. */
		if (i % STACKS_AT_ONCE == STACKS_AT_ONCE - 1 &&
		    !recording_is_limited(writer->config.recording))
			keep_first_error(writer,
					 recording_slice_commit(writer->config.recording, end_ns));
		writer->config.service(writer->config.service_context);
	}
}

static void name_stack(void *context, uint64_t id)
{
	struct slice_writer *writer = context;
	uint64_t shared = shared_sites_get(writer->sites, id);

	if (!recording_has_stack(writer->config.recording, shared))
		write_stack(writer, shared);
}

/*
 * Name the stacks of a process before its image changes: afterwards its addresses mean other code.
 * Their figures wait for the slice.
 */
void slice_name_stacks(struct slice_writer *writer, pid_t pid)
{
	kernel_stacks_each(writer->consumers->kernel_stacks, pid, name_stack, writer);
}

static enum sums_owner owner_of(void *context, uint32_t tgid)
{
	return targets_owner(((struct slice_writer *)context)->config.targets, (pid_t)tgid);
}

static void read_sums(struct slice_writer *writer)
{
	const typeof(writer->config.bpf->maps) *maps = &writer->config.bpf->maps;
	const struct {
		struct bpf_map *map, *shared;
		size_t words, pairs;
		void (*each)(void *context, const void *key, const uint64_t *delta);
	} tables[SUMMED_SHARED] = {
#define TABLE(name, shared, sum, pairs, each) { maps->name, shared, sizeof(sum) / 8, pairs, each }
#define SHARED(name, sum, pairs, each) TABLE(name, maps->name##_shared, sum, pairs, each)
		[SUMMED_CALLS] = SHARED(calls, struct memtoll_call_sum, 0, on_call_sum),
		[SUMMED_MAP_CALLS] = SHARED(map_calls, struct memtoll_map_sum, 0, on_map_sum),
		[SUMMED_SWAPS] = SHARED(swaps, struct memtoll_swap_sum, 0, on_swap_sum),
		[SUMMED_WALKS] = TABLE(walks, NULL, struct memtoll_walk_sum, 0, on_walk_sum),
		[SUMMED_PASSES] = TABLE(passes, NULL, struct memtoll_pass_sum, 0, on_pass_sum),
		[SUMMED_DROPS] = SHARED(drops, struct memtoll_drop_sum, 0, on_drop_sum),
		[SUMMED_WAITS] =
			SHARED(answers, struct memtoll_answer_sum, LATENCY_PAIRS, on_waits),
	};
	struct sums_reader reader = { on_call_sum, owner_of, writer };
	struct bpf_map *map;
	int i;

	sums_each_place(maps->call_places, writer->call_places, &reader);
	for (i = 0; i < SUMMED; i++) {
		map = i < SUMMED_SHARED ? tables[i].map : tables[i - SUMMED_SHARED].shared;
		reader.each = tables[i % SUMMED_SHARED].each;
		if (i % SUMMED_SHARED == SUMMED_CALLS)
			sums_each_call(map, writer->last[i], &reader);
		else if (map)
			sums_each(map, writer->last[i], tables[i % SUMMED_SHARED].words,
				  tables[i % SUMMED_SHARED].pairs, &reader);
	}
}

static void forget_stack(void *context, uint64_t id)
{
	struct slice_writer *writer = context;

	cpu_samples_forget_stack(writer->consumers->samples, id);
	past_cache_forget(writer->consumers->past_cache, id);
	recording_forget_stack(writer->config.recording, id);
	shared_sites_forget(writer->sites, id);
}

/*
 * All facts of a slice are written here, in one short transaction (names of stacks may follow in
 * more): should the tracer be killed, it is almost never in the middle of one.
 */
int slice_commit(struct slice_writer *writer, uint64_t start_ns, uint64_t end_ns)
{
	const struct consumers *consumers = writer->consumers;
	struct recording *recording = writer->config.recording;

	keep_first_error(writer, recording_slice_begin(recording, start_ns));
	ledger_drain(consumers->ledger, on_charge, on_life, writer);
	ledger_each_access(consumers->ledger, on_access, writer);
	giveback_drain(consumers->giveback, on_giveback, writer);
	keep_first_error(writer, advised_write(consumers->advised, recording, want_stack, writer));
	thresholds_drain(consumers->thresholds, targets_read_thresholds(writer->config.targets),
			 on_threshold, writer);
	kept_runs_drain(writer->runs, write_run, writer);
	read_sums(writer);
	keep_first_error(writer, reads_commit(consumers->reads, owner_of, on_read_sum, writer));
	keep_first_error(writer, huge_looks_write(consumers->huge_looks, recording));
	keep_first_error(writer, fills_commit(consumers->fills, recording, consumers->areas));
	write_walk_price(writer);
	targets_each(writer->config.targets, write_target, writer);
	keep_first_error(writer, cpu_samples_commit(consumers->samples, writer->config.targets,
						    recording, want_stack, writer));
	keep_first_error(writer, hit_counts_write(consumers->hits, recording,
						  budget_syscalls_scale(writer->config.budget)));
	keep_first_error(writer, budget_write(writer->config.budget));
	keep_first_error(writer, latency_commit(consumers->latency, recording, writer->config.bpf,
						want_stack, writer));
	sampled_drain(consumers->sampled, on_sampled, writer);
	keep_first_error(writer, targets_record_allocators(writer->config.targets));
	keep_first_error(writer, handlers_commit(recording, writer->config.bpf,
						 writer->config.targets, want_stack, writer));
	write_losses(writer);
	write_stacks(writer, end_ns);
	nameless_end_slice(writer->nameless);
	targets_forget_dead(writer->config.targets);
	kernel_stacks_drop(consumers->kernel_stacks, writer->config.targets, forget_stack, writer);
	write_losses(writer); /* what was lost since */
	keep_first_error(writer, recording_slice_commit(recording, end_ns));
	return writer->err;
}
