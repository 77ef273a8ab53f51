// SPDX-License-Identifier: GPL-2.0
/*
 * recording_facts.c: the statements that add facts to a recording. The tables are described in
 * recording.sql.
 */
#include "recording/recording.h"

#include <errno.h>
#include <glib.h>
#include <stdio.h>

#include "ledger/file_pages.h"
#include "ledger/sampled.h"
#include "recording/recording_store.h"

const char *const recording_statements[STMT_COUNT] = {
	[STMT_BEGIN] = "BEGIN",
	[STMT_COMMIT] = "COMMIT",
	[STMT_META] = "INSERT OR REPLACE INTO meta VALUES (?, ?)",
	/* An exec renames it. Of two with one number the one that was looked at names the row. */
	[STMT_PROCESS] =
		"INSERT INTO process (pid, parent_pid, comm, command, executable, start_ns,"
		" role) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
		" comm = excluded.comm, command = excluded.command,"
		" executable = excluded.executable WHERE excluded.executable <> ''"
		" OR executable = '' OR excluded.start_ns = start_ns",
	[STMT_PROCESS_END] = "UPDATE process SET end_ns = ?2, exit_code = ?3 WHERE pid = ?1",
	[STMT_PROCESS_CGROUP] = "UPDATE process SET memory_cgroup = ?2 WHERE pid = ?1",
	[STMT_PROCESS_CONTAINER] =
		"UPDATE process SET container = ?2, pid_inside = ?3 WHERE pid = ?1",
	[STMT_CONTAINER] = "INSERT OR REPLACE INTO container VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
	[STMT_ALLOCATOR] =
		"INSERT OR REPLACE INTO allocator (pid, module, kind, version, functions, refused,"
		" mmap_threshold_low, mmap_threshold_high, dynamic, tunables, linkage)"
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[STMT_ALLOCATOR_PROBE] =
		"INSERT OR REPLACE INTO allocator_probe VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
	[STMT_PAST_CACHE] = "INSERT OR REPLACE INTO past_cache VALUES (?, ?, ?, ?, ?)",
	[STMT_PRICE] = "INSERT OR REPLACE INTO price VALUES (?, ?, ?, ?)",
	[STMT_CALIBRATION] = "INSERT OR REPLACE INTO calibration VALUES (?, ?)",
	[STMT_SYSTEM_COUNTER] = "INSERT OR REPLACE INTO system_counter VALUES (?, ?)",
	[STMT_NOT_CAPTURED] = "INSERT OR REPLACE INTO not_captured VALUES (?, ?)",
	[STMT_MEMORY_CGROUP] =
		"INSERT OR REPLACE INTO memory_cgroup VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[STMT_MEMORY_CGROUP_COUNTER] =
		"INSERT OR REPLACE INTO memory_cgroup_counter VALUES (?, ?, ?)",
	[STMT_HUGE_LOOK] = "INSERT OR REPLACE INTO huge_look VALUES (?, ?, ?, ?)",
	/* What `memtoll hold --json` prints (hold.schema.json); anything else is a look in vain. */
	[STMT_HOLD_LOOK] =
		"INSERT INTO hold_look VALUES (?1, ?2, ?3,"
		" COALESCE(CASE WHEN json_valid(?4) THEN json_extract(?4, '$.complete') END, 0))",
	[STMT_HOLD_PARTS] =
		"INSERT OR REPLACE INTO hold_part"
		" SELECT ?1, json_extract(p.value, '$.pid'), k.key, k.value"
		" FROM json_each(CASE WHEN json_valid(?2) THEN ?2 ELSE '{}' END, '$.processes') p"
		" JOIN json_each(CASE WHEN json_type(p.value, '$.once') = 'object'"
		" THEN json_set(json_extract(p.value, '$.once'),"
		" '$.rss', json_extract(p.value, '$.sum.pss'),"
		" '$.swap', json_extract(p.value, '$.sum.swap_pss'))"
		" ELSE json_set(json_extract(p.value, '$.verdict.parts'),"
		" '$.rss', json_extract(p.value, '$.sum.rss'),"
		" '$.swap', json_extract(p.value, '$.sum.swap')) END) k"
		" WHERE json_type(p.value, '$.pid') = 'integer' AND k.type = 'integer'",
	[STMT_HOLD_PIN] = "INSERT INTO hold_pin VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[STMT_HOLD_REUSE] = "INSERT INTO hold_reuse VALUES (?, ?, ?, ?, ?, ?)",
	[STMT_SWAP_DEVICE] = "INSERT OR REPLACE INTO swap_device VALUES (?, ?, ?, ?, ?)",
	[STMT_ACCESS] = "INSERT OR REPLACE INTO access VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[STMT_LOSS_KIND] = "INSERT OR REPLACE INTO loss_kind VALUES (?, ?, ?)",
	[STMT_SLICE] = "INSERT INTO slice VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET"
		       " end_ns = excluded.end_ns",
	[STMT_PROCESS_SLICE] =
		"INSERT INTO process_slice VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
		" cpu_ns = cpu_ns + excluded.cpu_ns,"
		" minor_faults = minor_faults + excluded.minor_faults,"
		" major_faults = major_faults + excluded.major_faults,"
		" rss_bytes = COALESCE(excluded.rss_bytes, rss_bytes),"
		" swap_bytes = COALESCE(excluded.swap_bytes, swap_bytes)",
	[STMT_CALL] =
		"INSERT INTO call VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
		" ?, ?, ?, ?, ?, ?, ?, ?)"
		" ON CONFLICT DO UPDATE SET calls = calls + excluded.calls,"
		" failed = failed + excluded.failed, bytes = bytes + excluded.bytes,"
		" cpu_ns = cpu_ns + excluded.cpu_ns,"
		" timed_calls = timed_calls + excluded.timed_calls,"
		" map_cpu_ns = map_cpu_ns + excluded.map_cpu_ns,"
		" map_calls = map_calls + excluded.map_calls, faults = faults + excluded.faults,"
		" cleared_calls = cleared_calls + excluded.cleared_calls,"
		" cleared_bytes = cleared_bytes + excluded.cleared_bytes,"
		" cleared_cpu_ns = cleared_cpu_ns + excluded.cleared_cpu_ns,"
		" cleared_faults = cleared_faults + excluded.cleared_faults,"
		" mmapped_calls = mmapped_calls + excluded.mmapped_calls,"
		" nested_calls = nested_calls + excluded.nested_calls,"
		" slow_calls = slow_calls + excluded.slow_calls,"
		" slow_cpu_ns = slow_cpu_ns + excluded.slow_cpu_ns,"
		" off_ns = off_ns + excluded.off_ns, lock_waits = lock_waits + excluded.lock_waits,"
		" lock_ns = lock_ns + excluded.lock_ns,"
		" grown_calls = grown_calls + excluded.grown_calls,"
		" grown_bytes = grown_bytes + excluded.grown_bytes,"
		" copied_calls = copied_calls + excluded.copied_calls,"
		" copied_bytes = copied_bytes + excluded.copied_bytes",
	[STMT_LATENCY] = "INSERT INTO latency VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
			 " calls = calls + excluded.calls",
	[STMT_OUTLIER] =
		"INSERT INTO outlier VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
		" ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[STMT_BLOCK] =
		"INSERT INTO block VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
		" made = made + excluded.made, made_bytes = made_bytes + excluded.made_bytes,"
		" freed = freed + excluded.freed, freed_bytes = freed_bytes + excluded.freed_bytes,"
		" never_used_bytes = never_used_bytes + excluded.never_used_bytes",
	[STMT_FAULT] = "INSERT INTO fault VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
		       " ON CONFLICT DO UPDATE SET faults = faults + excluded.faults,"
		       " pages = pages + excluded.pages,"
		       " timed_faults = timed_faults + excluded.timed_faults,"
		       " timed_cpu_ns = timed_cpu_ns + excluded.timed_cpu_ns,"
		       " timed_cpu_us2 = timed_cpu_us2 + excluded.timed_cpu_us2,"
		       " blocked_ns = blocked_ns + excluded.blocked_ns",
	[STMT_FAULT_RUN] = "INSERT INTO fault_run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[STMT_MAP_CALL] = "INSERT INTO map_call VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
			  " ON CONFLICT DO UPDATE SET"
			  " calls = calls + excluded.calls, failed = failed + excluded.failed,"
			  " bytes = bytes + excluded.bytes, cpu_ns = cpu_ns + excluded.cpu_ns,"
			  " populated = populated + excluded.populated,"
			  " populated_ns = populated_ns + excluded.populated_ns",
	[STMT_THRESHOLD] = "INSERT INTO threshold VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
	[STMT_GIVEBACK] =
		"INSERT INTO giveback VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
		" ON CONFLICT DO UPDATE SET calls = calls + excluded.calls,"
		" gave_bytes = gave_bytes + excluded.gave_bytes,"
		" largest_bytes = MAX(largest_bytes, excluded.largest_bytes),"
		" span_bytes = MAX(span_bytes, excluded.span_bytes),"
		" again_faults = again_faults + excluded.again_faults,"
		" again_bytes = again_bytes + excluded.again_bytes,"
		" twice_bytes = twice_bytes + excluded.twice_bytes,"
		" thread_calls = thread_calls + excluded.thread_calls",
	[STMT_SAMPLE] = "INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
			" ON CONFLICT DO UPDATE SET samples = samples + excluded.samples,"
			" clearing = clearing + excluded.clearing",
	[STMT_SWAP] = "INSERT INTO swap VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
		      " count = count + excluded.count, pages = pages + excluded.pages,"
		      " cpu_ns = cpu_ns + excluded.cpu_ns,"
		      " blocked_ns = blocked_ns + excluded.blocked_ns",
	[STMT_RECLAIM_SITE] =
		"INSERT INTO reclaim_site VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
		" count = count + excluded.count, pages = pages + excluded.pages,"
		" cpu_ns = cpu_ns + excluded.cpu_ns,"
		" blocked_ns = blocked_ns + excluded.blocked_ns",
	[STMT_FILE] = "INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?)",
	[STMT_OWN_CACHE] = "INSERT OR REPLACE INTO own_cache VALUES (?, ?, ?, ?, ?)",
	[STMT_REUSE] = "INSERT OR REPLACE INTO reuse VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[STMT_REUSE_CLEAR] = "DELETE FROM reuse_distance WHERE subject = ? AND file = ?",
	[STMT_REUSE_DISTANCE] = "INSERT OR REPLACE INTO reuse_distance VALUES (?, ?, ?, ?, ?)",
	[STMT_FILE_READ] =
		"INSERT INTO file_read VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
		" ON CONFLICT DO UPDATE SET calls = calls + excluded.calls,"
		" failed = failed + excluded.failed, bytes = bytes + excluded.bytes,"
		" cpu_ns = cpu_ns + excluded.cpu_ns,"
		" blocked_ns = blocked_ns + excluded.blocked_ns,"
		" cached_calls = cached_calls + excluded.cached_calls,"
		" cached_bytes = cached_bytes + excluded.cached_bytes,"
		" filled_pages = filled_pages + excluded.filled_pages,"
		" faults = faults + excluded.faults",
	[STMT_HIT] = "INSERT INTO hit VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
		     " hits = hits + excluded.hits",
	[STMT_WATCH] = "INSERT INTO watch VALUES (?, ?, ?, ?, ?)",
	[STMT_WATCH_PASSED] = "INSERT INTO watch_passed VALUES (?, ?, ?, ?)",
	[STMT_WATCH_PROCESS] = "INSERT INTO watch_process VALUES (?, ?, ?, ?, ?, ?)",
	[STMT_WATCH_EVENT] = "INSERT INTO watch_event VALUES (?, ?, ?, ?, ?)",
	[STMT_THINNED] = "INSERT INTO thinned VALUES (?, ?, ?, ?)",
	[STMT_PAGE_DROP] = "INSERT INTO page_drop VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO"
			   " UPDATE SET pages = pages + excluded.pages",
	[STMT_ADVISED] = "INSERT INTO advised VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[STMT_HANDLER] = "INSERT INTO handler VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO"
			 " UPDATE SET waits = waits + excluded.waits,"
			 " wait_ns = wait_ns + excluded.wait_ns",
	[STMT_WAIT] = "INSERT INTO fault_wait VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
		      " waits = waits + excluded.waits",
	[STMT_LONGEST_WAIT] = "INSERT OR REPLACE INTO longest_wait VALUES (?, ?, ?, ?, ?, ?, ?)",
	[STMT_PAGE_FILL] =
		"INSERT OR REPLACE INTO page_fill VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
		" ?, ?, ?, ?)",
	[STMT_HIT_GAP] = "INSERT INTO hit_gap VALUES (?, ?, ?, ?)",
	[STMT_SAMPLED] = "INSERT INTO sampled VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[STMT_LOSS] = "INSERT INTO loss VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET"
		      " count = count + excluded.count",
	[STMT_STACK] = "INSERT OR IGNORE INTO stack VALUES (?, ?, ?, ?, ?)",
	[STMT_FRAME] = "INSERT INTO frame VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
	[STMT_STACK_FRAME] = "INSERT OR IGNORE INTO stack_frame VALUES (?, ?, ?, ?, ?)",
	[STMT_RENAME] = "UPDATE stack_frame SET frame_id = ? WHERE stack_id = ? AND depth = ?",
};

int recording_meta(struct recording *recording, const char *key, const char *value)
{
	return STORE(recording, STMT_META, text(key), text(value));
}

int recording_meta_int(struct recording *recording, const char *key, int64_t value)
{
	char number[32];

	snprintf(number, sizeof(number), "%lld", (long long)value);
	return recording_meta(recording, key, number);
}

int recording_process(struct recording *recording, const struct process_fact *process)
{
	return STORE(recording, STMT_PROCESS, signed_int(process->pid),
		     process->parent_pid > 0 ? signed_int(process->parent_pid) : text(NULL),
		     text(process->comm), text(process->command), text(process->executable),
		     count(process->start_ns), text(process->role));
}

int recording_process_end(struct recording *recording, pid_t pid, uint64_t end_ns, int exit_code)
{
	return STORE(recording, STMT_PROCESS_END, signed_int(pid), count(end_ns), known(exit_code));
}

int recording_process_cgroup(struct recording *recording, pid_t pid, const char *path)
{
	return STORE(recording, STMT_PROCESS_CGROUP, signed_int(pid), text(path));
}

int recording_process_container(struct recording *recording, pid_t pid, const char *id,
				pid_t pid_inside)
{
	return STORE(recording, STMT_PROCESS_CONTAINER, signed_int(pid), text(id),
		     pid_inside > 0 ? signed_int(pid_inside) : text(NULL));
}

int recording_container(struct recording *recording, const struct container_fact *container)
{
	return STORE(recording, STMT_CONTAINER, text(container->id), text(container->runtime),
		     text(container->name), text(container->image), text(container->pod),
		     text(container->pod_namespace), text(container->pod_uid),
		     text(container->title));
}

int recording_allocator(struct recording *recording, const struct allocator_fact *allocator)
{
	return STORE(recording, STMT_ALLOCATOR, signed_int(allocator->pid), text(allocator->module),
		     text(allocator->kind), text(allocator->version), text(allocator->functions),
		     text(allocator->refused), known(allocator->mmap_threshold_low),
		     known(allocator->mmap_threshold_high), known(allocator->dynamic),
		     text(allocator->tunables), text(allocator->linkage));
}

int recording_allocator_probe(struct recording *recording, const struct allocator_probe_fact *probe)
{
	return STORE(recording, STMT_ALLOCATOR_PROBE, signed_int(probe->pid), text(probe->module),
		     text(probe->symbol), text(probe->call), known(probe->offset),
		     text(probe->instruction), signed_int(probe->timed), text(probe->refusal));
}

int recording_past_cache(struct recording *recording, pid_t pid, const char *module,
			 const char *call, uint64_t cached_bytes, bool timed)
{
	return STORE(recording, STMT_PAST_CACHE, signed_int(pid), text(module), text(call),
		     count(cached_bytes), signed_int(timed));
}

int recording_price(struct recording *recording, const char *probe, double hit_ns, double inside_ns,
		    double error_ns)
{
	return STORE(recording, STMT_PRICE, text(probe), real(hit_ns), real(inside_ns),
		     real(error_ns));
}

int recording_calibration(struct recording *recording, const char *name, double value)
{
	return STORE(recording, STMT_CALIBRATION, text(name), real(value));
}

int recording_system_counter(struct recording *recording, const char *name, int64_t value)
{
	return STORE(recording, STMT_SYSTEM_COUNTER, text(name), signed_int(value));
}

int recording_not_captured(struct recording *recording, const char *toll, const char *reason)
{
	return STORE(recording, STMT_NOT_CAPTURED, text(toll), text(reason));
}

int recording_memory_cgroup(struct recording *recording, const struct memory_cgroup_fact *group)
{
	return STORE(recording, STMT_MEMORY_CGROUP, text(group->path), signed_int(group->version),
		     known(group->limit_bytes), text(group->limit_path),
		     known(group->swap_limit_bytes), known(group->usage_bytes),
		     known(group->peak_bytes), known(group->file_bytes),
		     known(group->beside_bytes));
}

int recording_memory_cgroup_counter(struct recording *recording, const char *path, const char *name,
				    int64_t value)
{
	return STORE(recording, STMT_MEMORY_CGROUP_COUNTER, text(path), text(name),
		     signed_int(value));
}

int recording_huge_look(struct recording *recording, pid_t pid, uint64_t looked,
			uint64_t used_pages, uint64_t gone)
{
	return STORE(recording, STMT_HUGE_LOOK, signed_int(pid), count(looked), count(used_pages),
		     count(gone));
}

int recording_hold_look(struct recording *recording, uint64_t look, uint64_t start_ns,
			uint64_t took_ns, const char *json)
{
	int err = STORE(recording, STMT_HOLD_LOOK, count(look), count(start_ns), count(took_ns),
			text(json));

	return err ? err : STORE(recording, STMT_HOLD_PARTS, count(look), text(json));
}

int recording_hold_pin(struct recording *recording, uint64_t look, const struct hold_pin_fact *pin)
{
	return STORE(recording, STMT_HOLD_PIN, count(look), signed_int(pin->pid), text(pin->at),
		     count(pin->size), text_or_empty(pin->call), bits(pin->stack_id),
		     count(pin->blocks), count(pin->bytes), real(pin->estimate),
		     text_or_empty(pin->hint));
}

int recording_hold_reuse(struct recording *recording, uint64_t look,
			 const struct hold_reuse_fact *reuse)
{
	return STORE(recording, STMT_HOLD_REUSE, count(look), signed_int(reuse->pid),
		     count(reuse->since_ns), real(reuse->seconds), count(reuse->pages),
		     count(reuse->used_pages));
}

int recording_swap_device(struct recording *recording, const struct swap_device_fact *device)
{
	return STORE(recording, STMT_SWAP_DEVICE, text(device->path), text(device->kind),
		     count(device->size_bytes), signed_int(device->priority), known(device->type));
}

int recording_access(struct recording *recording, const struct access_fact *access)
{
	return STORE(recording, STMT_ACCESS, signed_int(access->pid), text_or_empty(access->call),
		     bits(access->allocated_stack), text_or_empty(access->area),
		     text_or_empty(access->area_name), count(access->first_pages),
		     count(access->first_sequential_pages), count(access->in_pages),
		     count(access->in_sequential_pages), count(access->distinct_pages),
		     count(access->max_returns), count(access->untracked_pages));
}

int recording_process_slice(struct recording *recording, const struct process_slice_fact *fact)
{
	return STORE(recording, STMT_PROCESS_SLICE, signed_int(recording->slice),
		     signed_int(fact->pid), count(fact->cpu_ns), signed_int(fact->minor_faults),
		     signed_int(fact->major_faults), known(fact->rss_bytes),
		     known(fact->swap_bytes));
}

int recording_call(struct recording *recording, const struct call_fact *call)
{
	const struct memtoll_call_sum *sum = &call->sum;

	return STORE(recording, STMT_CALL, signed_int(recording->slice), signed_int(call->pid),
		     text(call->call), bits(call->stack_id),
		     count(call->timed_calls + sum->untimed_calls), count(sum->failed),
		     count(sum->bytes), count(sum->cpu_ns), count(call->timed_calls),
		     count(sum->map_cpu_ns), count(sum->map_calls), count(sum->faults),
		     count(sum->cleared_calls), count(sum->cleared_bytes),
		     count(sum->cleared_cpu_ns), count(sum->cleared_faults),
		     count(sum->mmapped_calls), signed_int(call->known_clearing),
		     count(sum->nested_calls), count(sum->slow_calls), count(sum->slow_cpu_ns),
		     count(sum->off_ns), count(sum->lock_waits), count(sum->lock_ns),
		     count(sum->grown_calls), count(sum->grown_bytes), count(sum->copied_calls),
		     count(sum->copied_bytes));
}

int recording_latency(struct recording *recording, const struct latency_fact *latency)
{
	return STORE(recording, STMT_LATENCY, signed_int(latency->pid), text(latency->call),
		     bits(latency->stack_id), count(latency->low_ns),
		     latency->high_ns == UINT64_MAX ? known(-1) : count(latency->high_ns),
		     count(latency->calls));
}

int recording_outlier(struct recording *recording, const char *call,
		      const struct memtoll_outlier *outlier)
{
	const uint32_t *faults = outlier->faults, *timed = outlier->timed;
	const uint32_t *map = outlier->map_calls;
	const __u64 *fault_ns = outlier->fault_ns;

	return STORE(recording, STMT_OUTLIER, signed_int(recording->slice),
		     signed_int(outlier->tgid), signed_int(outlier->tid), text(call),
		     bits(outlier->stack_id), count(outlier->start_ns), count(outlier->size),
		     count(outlier->wall_ns), count(outlier->cpu_ns), count(outlier->median_ns),
		     count(outlier->frees), count(outlier->cleared_bytes),
		     signed_int((outlier->flags & BLOCK_GLIBC) != 0),
		     signed_int((outlier->flags & BLOCK_MMAPPED) != 0),
		     count(faults[FAULT_KIND_ZERO]), count(timed[FAULT_KIND_ZERO]),
		     count(fault_ns[FAULT_KIND_ZERO]), count(faults[FAULT_KIND_SWAP]),
		     count(timed[FAULT_KIND_SWAP]), count(fault_ns[FAULT_KIND_SWAP]),
		     count(faults[FAULT_KIND_OTHER]), count(timed[FAULT_KIND_OTHER]),
		     count(fault_ns[FAULT_KIND_OTHER]), count(map[MAP_FN_MMAP]),
		     count(map[MAP_FN_MUNMAP]), count(map[MAP_FN_MREMAP]), count(map[MAP_FN_BRK]),
		     count(map[MAP_FN_MADVISE]), count(outlier->map_ns), count(outlier->lock_waits),
		     count(outlier->lock_ns), count(outlier->reclaim_ns), count(outlier->voluntary),
		     count(outlier->involuntary));
}

int recording_block(struct recording *recording, const struct block_fact *block)
{
	return STORE(recording, STMT_BLOCK, signed_int(recording->slice), signed_int(block->pid),
		     text(block->call), bits(block->stack_id), count(block->made),
		     count(block->made_bytes), count(block->freed), count(block->freed_bytes),
		     count(block->never_used_bytes));
}

int recording_fault(struct recording *recording, const struct fault_fact *fault)
{
	return STORE(recording, STMT_FAULT, signed_int(recording->slice), signed_int(fault->pid),
		     text(fault->fault_class), bits(fault->allocated_stack),
		     text(fault->allocated_call), bits(fault->touched_stack), text(fault->area),
		     text_or_empty(fault->area_name), text(fault->in_call),
		     signed_int(fault->in_memset), count(fault->faults), count(fault->pages),
		     count(fault->timed_faults), count(fault->timed_cpu_ns),
		     count(fault->timed_cpu_us2), count(fault->blocked_ns));
}

int recording_fault_run(struct recording *recording, const struct fault_run_fact *run)
{
	return STORE(recording, STMT_FAULT_RUN, signed_int(recording->slice), signed_int(run->pid),
		     signed_int(run->tid), text(run->fault_class), bits(run->address),
		     count(run->pages), count(run->faults), count(run->first_ns),
		     count(run->last_ns), bits(run->allocated_stack),
		     text_or_empty(run->allocated_call), bits(run->touched_stack),
		     text_or_empty(run->area));
}

int recording_map_call(struct recording *recording, const struct map_call_fact *call)
{
	return STORE(recording, STMT_MAP_CALL, signed_int(recording->slice), signed_int(call->pid),
		     text(call->call), text(call->in_call), bits(call->stack_id),
		     count(call->sum.calls), count(call->sum.failed), count(call->sum.bytes),
		     count(call->sum.cpu_ns), count(call->sum.populated),
		     count(call->sum.populated_ns));
}

int recording_threshold(struct recording *recording, const struct threshold_row *row)
{
	return STORE(recording, STMT_THRESHOLD, count(row->time_ns), signed_int(row->pid),
		     text(row->name), count(row->low_bytes), known(row->high_bytes), text(row->how),
		     text(row->call), bits(row->stack_id));
}

int recording_giveback(struct recording *recording, const struct giveback_fact *giveback)
{
	return STORE(recording, STMT_GIVEBACK, signed_int(recording->slice),
		     signed_int(giveback->pid), text(giveback->how), text(giveback->gave_call),
		     bits(giveback->gave_stack), text(giveback->got_call),
		     bits(giveback->got_stack), text(giveback->fault_class), count(giveback->calls),
		     count(giveback->gave_bytes), count(giveback->largest_bytes),
		     count(giveback->span_bytes), count(giveback->again_faults),
		     count(giveback->again_bytes), count(giveback->twice_bytes),
		     count(giveback->thread_calls));
}

int recording_sample(struct recording *recording, const struct sample_fact *sample)
{
	return STORE(recording, STMT_SAMPLE, signed_int(recording->slice), signed_int(sample->pid),
		     text(sample->place), text(sample->in_call), bits(sample->stack_id),
		     bits(sample->allocated_stack), text(sample->allocated_call),
		     count(sample->bytes_per_16_cycles), count(sample->samples),
		     count(sample->spread_bytes), count(sample->length_bytes), text(sample->area),
		     text(sample->area_name), count(sample->clearing));
}

int recording_swap(struct recording *recording, pid_t pid, const char *what, uint64_t stack_id,
		   const struct memtoll_swap_sum *sum)
{
	int err = STORE(recording, STMT_SWAP, signed_int(recording->slice), signed_int(pid),
			text(what), count(sum->count), count(sum->pages), count(sum->cpu_ns),
			count(sum->blocked_ns));

	if (err || !stack_id)
		return err;
	return STORE(recording, STMT_RECLAIM_SITE, signed_int(recording->slice), signed_int(pid),
		     text(what), bits(stack_id), count(sum->count), count(sum->pages),
		     count(sum->cpu_ns), count(sum->blocked_ns));
}

int recording_file(struct recording *recording, const struct file_fact *file)
{
	return STORE(recording, STMT_FILE, signed_int(file->file), count(file->dev),
		     bits(file->inode), text_or_empty(file->path), text(file->kind),
		     file->bytes ? count(file->bytes) : text(NULL));
}

int recording_fill(struct recording *recording, const struct fill_fact *fill)
{
	const struct file_site *site = fill->site;

	return STORE(recording, STMT_PAGE_FILL, count(site->dev), bits(site->inode),
		     text(fill->cause), text(fill->area_name), count(fill->library),
		     count(site->bytes), count(site->requests), count(site->first_pages),
		     count(site->first_sequential_pages), count(site->again_pages),
		     count(site->again_sequential_pages), count(site->distinct_pages),
		     count(site->max_returns), count(site->untracked_pages),
		     count(site->vain_pages), count(site->used_pages));
}

int recording_page_drop(struct recording *recording, const struct page_drop_fact *fact)
{
	return STORE(recording, STMT_PAGE_DROP, signed_int(recording->slice), signed_int(fact->pid),
		     text(fact->what), text(fact->how), bits(fact->stack_id), text(fact->comm),
		     text(fact->memory_cgroup), count(fact->pages));
}

int recording_advised(struct recording *recording, const struct advised_fact *fact)
{
	return STORE(recording, STMT_ADVISED, signed_int(recording->slice), signed_int(fact->pid),
		     text(fact->advice), bits(fact->stack_id), text(fact->fault_class),
		     count(fact->calls), count(fact->bytes), count(fact->again_faults),
		     count(fact->again_pages));
}

int recording_handler(struct recording *recording, const struct handler_fact *fact)
{
	return STORE(recording, STMT_HANDLER, signed_int(recording->slice), signed_int(fact->pid),
		     signed_int(fact->handler_pid), signed_int(fact->handler_tid), text(fact->comm),
		     text(fact->process), text(fact->request), bits(fact->stack_id),
		     count(fact->waits), count(fact->wait_ns));
}

int recording_wait(struct recording *recording, pid_t pid, uint64_t low_ns, uint64_t high_ns,
		   uint64_t waits)
{
	return STORE(recording, STMT_WAIT, signed_int(pid), count(low_ns),
		     high_ns == UINT64_MAX ? known(-1) : count(high_ns), count(waits));
}

int recording_longest_wait(struct recording *recording, pid_t pid,
			   const struct memtoll_longest_wait *longest)
{
	return STORE(recording, STMT_LONGEST_WAIT, signed_int(pid), count(longest->wait_ns),
		     count(longest->start_ns), signed_int(longest->tid), bits(longest->address),
		     bits(longest->stack_id), signed_int(longest->handler_tid));
}

int recording_own_cache(struct recording *recording, pid_t pid, const char *program,
			const char *setting, int64_t bytes, const char *source)
{
	return STORE(recording, STMT_OWN_CACHE, signed_int(pid), text(program), text(setting),
		     known(bytes), text(source));
}

int recording_reuse(struct recording *recording, const struct reuse_fact *fact)
{
	int err = STORE(recording, STMT_REUSE_CLEAR, text(fact->subject), signed_int(fact->file));

	if (err)
		return err;
	return STORE(recording, STMT_REUSE, text(fact->subject), signed_int(fact->file),
		     count(fact->block_bytes), count(fact->uses), real(fact->different),
		     real(fact->first), real(fact->rate), real(fact->error),
		     real(fact->max_distance));
}

int recording_reuse_distance(struct recording *recording, const char *subject, int64_t file,
			     uint64_t low, uint64_t high, double uses)
{
	return STORE(recording, STMT_REUSE_DISTANCE, text(subject), signed_int(file), count(low),
		     count(high), real(uses));
}

int recording_file_read(struct recording *recording, const struct file_read_fact *fact)
{
	const struct memtoll_read_sum *sum = &fact->sum;

	return STORE(recording, STMT_FILE_READ, signed_int(recording->slice), signed_int(fact->pid),
		     signed_int(fact->file), text(fact->call), bits(fact->stack_id),
		     signed_int(fact->direct), count(sum->calls), count(sum->failed),
		     count(sum->bytes), count(sum->cpu_ns), count(sum->blocked_ns),
		     count(sum->cached_calls), count(sum->cached_bytes), count(sum->filled_pages),
		     count(sum->faults));
}

int recording_hit(struct recording *recording, pid_t pid, const char *probe, uint64_t hits)
{
	return STORE(recording, STMT_HIT, signed_int(recording->slice), signed_int(pid),
		     text(probe), count(hits));
}

int recording_sampled(struct recording *recording, const char *call,
		      const struct sampled_site *site)
{
	return STORE(recording, STMT_SAMPLED, signed_int(recording->slice), signed_int(site->pid),
		     text(call), bits(site->stack_id), count(site->chosen),
		     count(site->chosen_bytes), real(site->calls), real(site->calls_variance),
		     real(site->bytes), real(site->bytes_variance), real(site->freed),
		     real(site->freed_bytes), real(site->freed_bytes_variance));
}

int recording_loss(struct recording *recording, const char *name, uint64_t lost)
{
	return STORE(recording, STMT_LOSS, signed_int(recording->slice), text(name), count(lost));
}

int recording_stack(struct recording *recording, uint64_t stack_id, pid_t pid, const char *how,
		    bool complete, const char *stopped)
{
	gint64 *key;

	if (recording->error)
		return recording->error;
	if (recording_has_stack(recording, stack_id))
		return 0;
	key = g_new(gint64, 1);
	*key = (gint64)stack_id;
	g_hash_table_add(recording->stacks, key);
	return STORE(recording, STMT_STACK, bits(stack_id), signed_int(pid), text(how),
		     signed_int(complete), text(stopped));
}

int recording_frame_number(struct recording *recording, const struct frame *frame, int64_t *number)
{
	/* No field holds a control character that is taken for the border between two. */
	char *key = g_strdup_printf("%s\x1f%s\x1f%s\x1f%u\x1f%d\x1f%s\x1f%llx", frame->function,
				    frame->module, frame->file, frame->line, (int)frame->kind,
				    frame->build_id, (unsigned long long)frame->module_offset);
	gint64 *found = g_hash_table_lookup(recording->frames, key);
	int err = -EIO;

	if (found) {
		*number = *found;
		g_free(key);
		return 0;
	}
	*number = ++recording->frame_count;
	found = g_new(gint64, 1);
	*found = *number;
	g_hash_table_insert(recording->frames, key, found);
	err = STORE(recording, STMT_FRAME, signed_int(*number), text(frame->function),
		    text(frame->module), text(frame->file), count(frame->line),
		    text(frame_kind_name(frame->kind)), text(frame->build_id),
		    bits(frame->module_offset));
	return err;
}

int recording_stack_frame(struct recording *recording, uint64_t stack_id, unsigned int depth,
			  uint64_t address, const struct frame *frame, bool inlined)
{
	int64_t number = 0;
	int err = recording->error;

	if (err)
		return err;
	err = recording_frame_number(recording, frame, &number);
	if (err)
		return err;
	return STORE(recording, STMT_STACK_FRAME, bits(stack_id), signed_int(depth), bits(address),
		     signed_int(number), signed_int(inlined));
}

void recording_forget_stack(struct recording *recording, uint64_t stack_id)
{
	gint64 key = (gint64)stack_id;

	g_hash_table_remove(recording->stacks, &key);
}

bool recording_has_stack(struct recording *recording, uint64_t stack_id)
{
	gint64 key = (gint64)stack_id;

	return g_hash_table_contains(recording->stacks, &key);
}
