// SPDX-License-Identifier: GPL-2.0
/*
 * remapped.c: mappings that are unmapped and made anew. A pool has the pages that mappings of one
 * call and one class of sizes have released and that new ones have not yet faulted in again.
 */
#include "ledger/giveback_internal.h"

/* Unmapped mappings that are remembered per process, for runs that arrive late. */
#define ENDED_KEPT 64

/* Calls that a pool has released pages of, each for itself; of more the oldest is dropped. */
#define RELEASERS_MAX 64

/*
 * Heaps of glibc's arenas other than the main one: HEAP_MAX_SIZE (malloc/arena.c), and aligned to
 * it. It maps as much, or twice as much to cut an aligned piece from, without access.
 */
#define ARENA_HEAP (64ULL << 20)

static bool may_be_arena(const struct memtoll_mapping *mapping)
{
	return !mapping->arg && (mapping->len == ARENA_HEAP || mapping->len == 2 * ARENA_HEAP);
}

static bool is_arena_heap(const struct extent *extent)
{
	return extent->arena && !(extent->range.start % ARENA_HEAP) &&
	       extent->range.end - extent->range.start == ARENA_HEAP;
}

/* Four classes to each power of two. */
static uint16_t size_class(uint64_t bytes)
{
	unsigned int log = 63 - __builtin_clzll(bytes | 4);

	return log * 4 + (bytes >> (log - 2) & 3);
}

/* An arena's heaps are one pool, whichever call needs the next one, and however it finds the place. */
static struct pool *pool_of(struct giveback *giveback, struct process *process,
			    const struct memtoll_mapping *mapping)
{
	bool arena = may_be_arena(mapping);
	struct pool_key key = {
		.stack = arena ? 0 : mapping->stack_id,
		.size_class = size_class(arena ? ARENA_HEAP : mapping->len),
		.fn = arena ? FN_NONE : mapping->in_fn,
	};
	struct pool *pool = g_hash_table_lookup(process->pools, &key);

	if (!pool && giveback->pools_left) {
		giveback->pools_left--;
		pool = g_new0(struct pool, 1);
		pool->key = key;
		pool->released = g_array_new(FALSE, TRUE, sizeof(struct released_pages));
		g_hash_table_insert(process->pools, &pool->key, pool);
	}
	return pool;
}

static void pool_add(struct pool *pool, const struct call_site *by, uint8_t how, uint64_t pages)
{
	struct released_pages added = { .by = *by, .how = how, .pages = pages };
	guint i;

	for (i = 0; i < pool->released->len; i++) {
		const struct released_pages *one =
			&g_array_index(pool->released, struct released_pages, i);

		if (one->by.stack == by->stack && one->by.fn == by->fn && one->how == how) {
			added.pages += one->pages;
			g_array_remove_index(pool->released, i);
			break;
		}
	}
	if (pool->released->len == RELEASERS_MAX)
		g_array_remove_index(pool->released, 0);
	g_array_append_val(pool->released, added);
}

/* The last call that released, and how much of that is not used again; or NULL. */
static struct released_pages *pool_last(const struct pool *pool)
{
	guint count = pool->released->len;

	return count ? &g_array_index(pool->released, struct released_pages, count - 1) : NULL;
}

/* Pages in use again: those released last first, as allocators take the top of their lists. */
static void pool_take(struct giveback *giveback, struct pool *pool, const struct memtoll_run *run,
		      const struct call_site *got, uint64_t pages)
{
	guint i = pool->released->len;

	while (pages && i--) {
		struct released_pages *one =
			&g_array_index(pool->released, struct released_pages, i);
		uint64_t again = MIN(pages, one->pages);

		giveback_reused(giveback, run, one->how, &one->by, got, again);
		one->pages -= again;
		pages -= again;
	}
}

static void remember_extent(struct process *process, const struct extent *extent, uint64_t ended_ns)
{
	struct extent *kept;

	if (!process->ended)
		process->ended = g_new0(struct extent, ENDED_KEPT);
	kept = &process->ended[process->ended_next++ % ENDED_KEPT];
	*kept = *extent;
	kept->range.ended_ns = ended_ns;
}

/* Let no mapping reach across an address; its pages in use are divided in proportion. */
static void split_extent(struct giveback *giveback, struct process *process, uint64_t address)
{
	struct range *range = range_at(process->extents, address);
	struct extent *extent = (struct extent *)range, *rest;
	uint64_t bytes;

	if (!range || range->start == address)
		return;
	bytes = range->end - range->start;
	rest = g_memdup2(extent, sizeof(*extent));
	rest->range.start = address;
	rest->used_pages = (unsigned __int128)extent->used_pages * (range->end - address) / bytes;
	extent->used_pages -= rest->used_pages;
	range->end = address;
	giveback_range_put(giveback, process->extents, &rest->range);
}

/*
 * What was given back in place before its mapping went comes again in the next one: a thread's
 * stack, the top of an arena's heap that is then deleted.
 */
static void keep_released(struct process *process, const struct extent *extent)
{
	uint64_t start = extent->range.start, end = extent->range.end;
	struct range *range;

	while (start < end && (range = range_overlapping(process->released, start, end))) {
		const struct release *release = &((struct released_range *)range)->first;
		uint64_t from = MAX(start, range->start), to = MIN(end, range->end);

		start = range->end;
		pool_add(extent->pool, &release->by, release->how,
			 pagebits_released(process->bits, from, to));
	}
}

/* mapping: the call that unmapped; NULL: something else is there, so a record is missing. */
static void unmap(struct giveback *giveback, struct process *process,
		  const struct memtoll_mapping *mapping, uint64_t start, uint64_t end)
{
	struct call_site by = { .stack = mapping ? mapping->stack_id : 0,
				.fn = mapping ? mapping->in_fn : 0 };
	struct giveback_sum *sum = NULL;
	struct range *range;
	uint8_t how;

	split_extent(giveback, process, start);
	split_extent(giveback, process, end);
	while (start < end && (range = range_overlapping(process->extents, start, end))) {
		struct extent *extent = (struct extent *)range;
		uint64_t bytes = range->end - range->start;

		extent->used_pages = MIN(extent->used_pages, bytes / PAGE);
		how = is_arena_heap(extent) ? GIVEBACK_HEAP :
		      extent->stack	    ? GIVEBACK_STACK_UNMAPPED :
					      GIVEBACK_MUNMAP;
		if (range->fn && !extent->arena)
			range_of_size_add(&process->mapped, 0, bytes);
		if (mapping && extent->pool) {
			if (!sum || sum->how != how)
				sum = giveback_called(giveback, mapping, how);
			sum->largest_bytes = MAX(sum->largest_bytes, bytes);
			sum->gave_pages += extent->used_pages;
			keep_released(process, extent);
			pool_add(extent->pool, &by, how, extent->used_pages);
			remember_extent(process, extent, mapping->start_ns);
		} else if (mapping) {
			giveback->unfollowed += extent->used_pages;
		}
		start = range->end;
		giveback_range_drop(giveback, process->extents, range);
	}
}

void extents_munmap(struct giveback *giveback, struct process *process,
		    const struct memtoll_mapping *mapping, uint64_t start, uint64_t end)
{
	unmap(giveback, process, mapping, start, end);
	released_forget(giveback, process, start, end);
}

void extents_mmap(struct giveback *giveback, struct process *process,
		  const struct memtoll_mapping *mapping)
{
	uint64_t start = mapping->result, end = start + PAGE_CEIL(mapping->len);
	bool anonymous = mapping->flags & MAPPING_ANONYMOUS;
	struct extent *extent;

	/* What was mapped there stays mapped, all zeros. */
	if (anonymous && (mapping->flags & MAPPING_FIXED) &&
	    range_overlapping(process->extents, start, end)) {
		released_add(giveback, process, mapping, GIVEBACK_FIXED, start, end);
		return;
	}
	unmap(giveback, process, NULL, start, end);
	released_forget(giveback, process, start, end);
	if (!anonymous)
		return;
	extent = g_new0(struct extent, 1);
	extent->range.start = start;
	extent->range.end = end;
	extent->range.made_ns = mapping->start_ns;
	extent->range.stack_id = mapping->stack_id;
	extent->range.fn = mapping->in_fn;
	extent->pool = pool_of(giveback, process, mapping);
	extent->arena = may_be_arena(mapping);
	extent->stack = mapping->flags & MAPPING_STACK;
	if (giveback_range_put(giveback, process->extents, &extent->range) && mapping->in_fn &&
	    !extent->arena)
		range_of_size_add(&process->mapped, end - start, 0);
}

/*
 * The mapping that began at `from` begins at `to`. Bits do not move with it: its pages are in use.
 */
static void move_extent(struct giveback *giveback, struct process *process,
			const struct memtoll_mapping *mapping, uint64_t before, uint64_t after)
{
	uint64_t from = mapping->addr, to = mapping->result;
	struct range *range;

	split_extent(giveback, process, from);
	split_extent(giveback, process, from + before);
	range = range_at(process->extents, from);
	if (!range || range->end != from + before)
		return;
	g_tree_steal(process->extents, &range->start);
	giveback->ranges_left++;
	unmap(giveback, process, NULL, to, to + after);
	if (from != to)
		released_forget(giveback, process, from, from + before);
	range->start = to;
	range->end = to + after;
	if (range->fn && !((struct extent *)range)->arena)
		range_of_size_add(&process->mapped, after, before);
	giveback_range_put(giveback, process->extents, range);
}

void extents_mremap(struct giveback *giveback, struct process *process,
		    const struct memtoll_mapping *mapping)
{
	uint64_t before = PAGE_CEIL(mapping->len), after = PAGE_CEIL(mapping->arg);

	if (!before || !after)
		return;
	if (after < before) {
		extents_munmap(giveback, process, mapping, mapping->addr + after,
			       mapping->addr + before);
		before = after;
	}
	if (before != after || mapping->addr != (uint64_t)mapping->result)
		move_extent(giveback, process, mapping, before, after);
}

/* The mapping that held the address and was unmapped while the run was on its way here, or NULL. */
static struct extent *ended_extent(struct process *process, const struct memtoll_run *run,
				   uint64_t address)
{
	unsigned int i, count = process->ended ? MIN(process->ended_next, ENDED_KEPT) : 0;

	for (i = 1; i <= count; i++) {
		struct extent *extent = &process->ended[(process->ended_next - i) % ENDED_KEPT];

		if (address >= extent->range.start && address < extent->range.end &&
		    run->last_ns >= extent->range.made_ns &&
		    run->first_ns <= extent->range.ended_ns)
			return extent;
	}
	return NULL;
}

/* Pages of [start, end) that are new in the mappings there; those back in place are not. */
void extents_use(struct giveback *giveback, struct process *process, const struct memtoll_run *run,
		 uint64_t start, uint64_t end, uint64_t back)
{
	while (start < end) {
		struct range *range = range_overlapping(process->extents, start, end);
		bool inside = range && range->start <= start && range->made_ns <= run->last_ns;
		struct extent *extent =
			inside ? (struct extent *)range : ended_extent(process, run, start);
		uint64_t limit = extent			       ? extent->range.end :
				 range && range->start > start ? range->start :
				 range			       ? range->end :
								 end;
		uint64_t pages, old;
		struct released_pages *last;
		struct call_site got;

		limit = MIN(limit, end);
		pages = (limit - start) / PAGE;
		old = MIN(back, pages);
		back -= old;
		start = limit;
		if (!extent || !extent->pool) {
			if (inside)
				extent->used_pages += pages;
			continue;
		}
		/* Of a thread's stack it says nothing who made the thread. */
		got.stack = extent->stack ? run->stack_id : extent->range.stack_id;
		got.fn = extent->stack ? run->in_fn : extent->range.fn;
		pool_take(giveback, extent->pool, run, &got, pages - old);
		last = pool_last(extent->pool);
		if (inside) {
			extent->used_pages += pages;
		} else if (last) {
			last->pages += pages;
			giveback_sum_of(giveback, process->pid, last->how, &last->by)->gave_pages +=
				pages;
		}
	}
}
