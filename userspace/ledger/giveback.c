// SPDX-License-Identifier: GPL-2.0
/*
 * giveback.c: memory that is used again after it was released is recognized in two ways. In place
 * (brk, madvise, fixed mappings) by its address: released.c. After munmap by the call that maps and
 * a class of sizes: remapped.c.
 *
 * Runs of faults may arrive after the record of the call that gave the pages back, when another
 * thread's sweep was still open: they count as having been in use before.
 */
#include "ledger/giveback_internal.h"

#include <string.h>

#include "base/hash.h"
#include "events/passed.h"
#include "events/refined.h"

/* All processes together. A part of pagebits takes 200 bytes, the others about as much each. */
#define PARTS_MAX (128 * 1024)	/* 256 GiB in use */
#define RANGES_MAX (128 * 1024) /* mappings and released ranges */
#define POOLS_MAX (32 * 1024)

/* madvise(2). */
#define ADVICE_DONTNEED 4
#define ADVICE_FREE 8
#define ADVICE_REMOVE 9
#define ADVICE_DONTNEED_LOCKED 24

const char *giveback_how_name(enum giveback_how how)
{
	static const char *const names[GIVEBACK_HOWS] = { "munmap", "brk",	     "dontneed",
							  "free",   "fixed",	     "heap",
							  "stack",  "stack_unmapped" };

	return how < GIVEBACK_HOWS ? names[how] : "";
}

/* ---- sums ---- */

static guint sum_hash(gconstpointer key)
{
	const struct giveback_sum *sum = key;
	uint64_t hash = sum->gave_stack ^ (sum->got_stack * HASH_FACTOR) ^
			(uint64_t)sum->pid << 32 ^
			((uint32_t)sum->how << 24 | sum->gave_fn << 16 | sum->got_fn << 8 |
			 sum->fault_class);

	return hash ^ (hash >> 32);
}

static gboolean sum_equal(gconstpointer a, gconstpointer b)
{
	const struct giveback_sum *x = a, *y = b;

	return x->pid == y->pid && x->gave_stack == y->gave_stack && x->got_stack == y->got_stack &&
	       x->how == y->how && x->gave_fn == y->gave_fn && x->got_fn == y->got_fn &&
	       x->fault_class == y->fault_class;
}

static struct giveback_sum *sum_get(struct giveback *giveback, const struct giveback_sum *key)
{
	struct giveback_sum *sum = g_hash_table_lookup(giveback->sums, key);

	if (!sum) {
		sum = g_memdup2(key, sizeof(*key));
		g_hash_table_insert(giveback->sums, sum, sum);
	}
	return sum;
}

struct giveback_sum *giveback_sum_of(struct giveback *giveback, pid_t pid, uint8_t how,
				     const struct call_site *by)
{
	return sum_get(giveback, &(struct giveback_sum){ .pid = pid,
							 .how = how,
							 .gave_stack = by->stack,
							 .gave_fn = by->fn });
}

struct giveback_sum *giveback_called(struct giveback *giveback,
				     const struct memtoll_mapping *mapping, uint8_t how)
{
	struct call_site by = { .stack = mapping->stack_id, .fn = mapping->in_fn };
	struct giveback_sum *sum = giveback_sum_of(giveback, mapping->tgid, how, &by);

	sum->calls++;
	sum->thread_calls += mapping->tid != mapping->tgid;
	return sum;
}

void giveback_reused(struct giveback *giveback, const struct memtoll_run *run, uint8_t how,
		     const struct call_site *by, const struct call_site *got, uint64_t pages)
{
	struct giveback_sum *sum;

	if (!pages)
		return;
	sum = sum_get(giveback, &(struct giveback_sum){ .pid = run->tgid,
							.how = how,
							.gave_stack = by->stack,
							.gave_fn = by->fn,
							.got_stack = got->stack,
							.got_fn = got->fn,
							.fault_class = run->fault_class });
	pages = with_passed(run, pages);
	sum->again_pages += pages;
	/* With huge pages one fault maps many. */
	sum->again_faults += MAX(1, pages * run->faults / run->pages);
	if (run->in_fn == FN_CALLOC && (run->flags & RUN_MEMSET) && (run->flags & RUN_FILL_ZERO))
		sum->twice_pages += pages;
}

/* ---- processes ---- */

static void pool_free(gpointer data)
{
	struct pool *pool = data;

	g_array_free(pool->released, TRUE);
	g_free(pool);
}

static void process_free(gpointer data)
{
	struct process *process = data;

	g_tree_destroy(process->extents);
	g_tree_destroy(process->released);
	g_hash_table_destroy(process->pools);
	pagebits_free(process->bits);
	g_hash_table_destroy(process->release_uses);
	g_free(process->ended);
	g_free(process);
}

static guint pool_hash(gconstpointer key)
{
	const struct pool_key *pool = key;
	uint64_t hash = (pool->stack ^ (uint64_t)pool->size_class << 16 ^ pool->fn) * HASH_FACTOR;

	return hash ^ (hash >> 32);
}

static gboolean pool_equal(gconstpointer a, gconstpointer b)
{
	return !memcmp(a, b, sizeof(struct pool_key));
}

static struct process *process_get(struct giveback *giveback, pid_t pid)
{
	struct process *process = g_hash_table_lookup(giveback->processes, GINT_TO_POINTER(pid));

	if (!process) {
		process = g_new0(struct process, 1);
		process->pid = pid;
		process->extents = ranges_new(g_free);
		process->released = ranges_new(g_free);
		process->pools = g_hash_table_new_full(pool_hash, pool_equal, NULL, pool_free);
		process->bits = pagebits_new(&giveback->budget);
		process->release_uses = release_uses_new();
		g_hash_table_insert(giveback->processes, GINT_TO_POINTER(pid), process);
	}
	return process;
}

struct giveback *giveback_new(void)
{
	struct giveback *giveback = g_new0(struct giveback, 1);

	giveback->processes = g_hash_table_new_full(NULL, NULL, NULL, process_free);
	giveback->sums = g_hash_table_new_full(sum_hash, sum_equal, NULL, g_free);
	giveback->came_again = came_again_new();
	giveback->budget.left = PARTS_MAX;
	giveback->ranges_left = RANGES_MAX;
	giveback->pools_left = POOLS_MAX;
	return giveback;
}

void giveback_free(struct giveback *giveback)
{
	if (!giveback)
		return;
	g_hash_table_destroy(giveback->processes);
	g_hash_table_destroy(giveback->sums);
	came_again_free(giveback->came_again);
	g_free(giveback);
}

/* How far the process's memory went up and down, by now, belongs to its releases in this slice. */
static void record_spans(struct giveback *giveback, const struct process *process)
{
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, giveback->sums);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct giveback_sum *sum = value;
		const struct range_of_size *size = sum->how == GIVEBACK_BRK    ? &process->heap :
						   sum->how == GIVEBACK_MUNMAP ? &process->mapped :
										 NULL;

		if (sum->pid == process->pid && sum->calls && size && size->fell)
			sum->span_bytes =
				MAX(sum->span_bytes, MAX(size->high - size->low, size->came));
	}
}

void giveback_restart(struct giveback *giveback, pid_t pid)
{
	struct process *process = g_hash_table_lookup(giveback->processes, GINT_TO_POINTER(pid));

	if (!process)
		return;
	record_spans(giveback, process);
	giveback->ranges_left += g_tree_nnodes(process->extents) + g_tree_nnodes(process->released);
	giveback->pools_left += g_hash_table_size(process->pools);
	g_hash_table_remove(giveback->processes, GINT_TO_POINTER(pid));
}

static void range_of_size_set(struct range_of_size *size, uint64_t now)
{
	if (now < size->now) {
		size->low = size->fell ? MIN(size->low, now) : now;
		size->high = size->fell ? size->high : size->now;
		size->fell = true;
	}
	size->high = MAX(size->high, now);
	size->now = now;
	size->trough = MIN(size->trough, now);
	size->came = MAX(size->came, MIN(now, size->peak) - size->trough);
	if (now >= size->peak) {
		size->peak = now;
		size->trough = now;
	}
}

void range_of_size_add(struct range_of_size *size, uint64_t up, uint64_t down)
{
	range_of_size_set(size, size->now + up > down ? size->now + up - down : 0);
}

/* ---- ranges of both kinds ---- */

bool giveback_range_put(struct giveback *giveback, GTree *ranges, struct range *range)
{
	if (!giveback->ranges_left) {
		giveback->unfollowed += (range->end - range->start) / PAGE;
		g_free(range);
		return false;
	}
	giveback->ranges_left--;
	ranges_add(ranges, range);
	return true;
}

void giveback_range_drop(struct giveback *giveback, GTree *ranges, struct range *range)
{
	giveback->ranges_left++;
	g_tree_remove(ranges, &range->start);
}

/* ---- records ---- */

static void on_brk(struct giveback *giveback, struct process *process,
		   const struct memtoll_mapping *mapping)
{
	uint64_t before = PAGE_CEIL(mapping->addr), after = PAGE_CEIL((uint64_t)mapping->result);

	if (!process->heap.peak) {
		process->heap.peak = before;
		process->heap.trough = before;
	}
	process->heap.now = before;
	range_of_size_set(&process->heap, after);
	if (after < before)
		released_add(giveback, process, mapping, GIVEBACK_BRK, after, before);
	else
		released_heap_grew(giveback, process, mapping, before, after);
}

static void on_madvise(struct giveback *giveback, struct process *process,
		       const struct memtoll_mapping *mapping)
{
	uint64_t end = mapping->addr + PAGE_CEIL(mapping->len);

	switch (mapping->arg) {
	case ADVICE_DONTNEED:
	case ADVICE_DONTNEED_LOCKED:
	case ADVICE_REMOVE:
		released_add(giveback, process, mapping,
			     mapping->flags & MAPPING_STACK ? GIVEBACK_STACK : GIVEBACK_DONTNEED,
			     mapping->addr, end);
		break;
	case ADVICE_FREE:
		released_add(giveback, process, mapping, GIVEBACK_FREE, mapping->addr, end);
		break;
	}
}

/* Records come from the kernel; addresses that cannot be are ignored all the same. */
static bool is_plausible(const struct memtoll_mapping *mapping)
{
	const uint64_t top = 1ULL << 57;

	if (mapping->result < 0 || (uint64_t)mapping->result >= top || mapping->len >= top)
		return false;
	if (mapping->map_fn == MAP_FN_MMAP || mapping->map_fn == MAP_FN_MREMAP)
		if (mapping->result % PAGE || !mapping->result)
			return false;
	if (mapping->map_fn == MAP_FN_MREMAP && mapping->arg >= top)
		return false;
	return mapping->map_fn == MAP_FN_MMAP || mapping->map_fn == MAP_FN_BRK ||
	       (mapping->addr < top && !(mapping->addr % PAGE));
}

void giveback_mapping(struct giveback *giveback, const struct memtoll_mapping *mapping)
{
	struct process *process = process_get(giveback, mapping->tgid);

	if (!is_plausible(mapping))
		return;
	switch (mapping->map_fn) {
	case MAP_FN_MMAP:
		extents_mmap(giveback, process, mapping);
		break;
	case MAP_FN_MUNMAP:
		extents_munmap(giveback, process, mapping, mapping->addr,
			       mapping->addr + PAGE_CEIL(mapping->len));
		break;
	case MAP_FN_MREMAP:
		extents_mremap(giveback, process, mapping);
		break;
	case MAP_FN_BRK:
		if (mapping->result)
			on_brk(giveback, process, mapping);
		break;
	case MAP_FN_MADVISE:
		on_madvise(giveback, process, mapping);
		break;
	}
}

/* Each page faults in this way once until it is given back. */
static bool brings_in(uint8_t fault_class)
{
	if (fault_class == FAULT_ZERO_UPGRADE)
		return false; /* the read before it has */
	return fault_clears(fault_class) || fault_class == FAULT_ZERO_READ ||
	       fault_class == FAULT_READ_POPULATED;
}

void giveback_run(struct giveback *giveback, const struct memtoll_run *run, uint64_t owner_stack,
		  uint8_t owner_fn)
{
	struct call_site owner = { .stack = owner_stack, .fn = owner_fn };
	uint64_t at = PAGE_FLOOR(run->address), end = at + run->pages * PAGE;
	struct process *process;

	if (!brings_in(run->fault_class) || !run->pages || end <= at)
		return;
	came_again_brought(giveback->came_again, run);
	process = process_get(giveback, run->tgid);
	while (at < end) {
		uint64_t limit = end;
		uint64_t back = released_use(giveback, process, run, at, &limit, &owner);

		extents_use(giveback, process, run, at, limit, back);
		at = limit;
	}
}

static void add_again(void *context, const struct giveback_sum *part)
{
	struct giveback_sum *sum = sum_get(context, &(struct giveback_sum){
							    .pid = part->pid,
							    .how = part->how,
							    .gave_stack = part->gave_stack,
							    .got_stack = part->got_stack,
							    .gave_fn = part->gave_fn,
							    .got_fn = part->got_fn,
							    .fault_class = part->fault_class,
						    });

	sum->again_pages += part->again_pages;
	sum->again_faults += part->again_faults;
	sum->twice_pages += part->twice_pages;
}

void giveback_unspoken(struct giveback *giveback, const struct memtoll_run *part)
{
	if (brings_in(part->fault_class))
		came_again_unspoken(giveback->came_again, part);
}

/* ---- facts ---- */

static void range_of_size_restart(struct range_of_size *size)
{
	size->low = size->now;
	size->high = size->now;
	size->fell = false;
}

void giveback_drain(struct giveback *giveback, giveback_fn *on_sum, void *context)
{
	GHashTableIter iter;
	gpointer value;

	came_again_settle(giveback->came_again, giveback->sums, add_again, giveback);
	giveback->swept = false;
	g_hash_table_iter_init(&iter, giveback->processes);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct process *process = value;

		if (process->heap.fell || process->mapped.fell)
			record_spans(giveback, process);
		range_of_size_restart(&process->heap);
		range_of_size_restart(&process->mapped);
	}
	g_hash_table_iter_init(&iter, giveback->sums);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		on_sum(context, value);
		g_hash_table_iter_remove(&iter);
	}
}

uint64_t giveback_unfollowed(const struct giveback *giveback)
{
	return giveback->unfollowed + giveback->budget.refused_pages;
}
