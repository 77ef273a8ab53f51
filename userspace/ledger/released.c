// SPDX-License-Identifier: GPL-2.0
/*
 * released.c: memory given back in place. A released range has its addresses and the call that
 * released them; the bits of its pages say which have not been used since. Where faults are passed
 * over many pages have no bits: how many of them had been in use is estimated, for each call.
 */
#include "ledger/giveback_internal.h"

#include "base/hash.h"
#include "events/passed.h"

/* Split the range that an address lies in the middle of. */
static void split_released(struct giveback *giveback, struct process *process, uint64_t address)
{
	struct range *range = range_at(process->released, address);
	struct released_range *rest;

	if (!range || range->start == address)
		return;
	rest = g_memdup2(range, sizeof(struct released_range));
	rest->range.start = address;
	range->end = address;
	giveback_range_put(giveback, process->released, &rest->range);
}

static void cut_released(struct giveback *giveback, struct process *process, uint64_t start,
			 uint64_t end)
{
	struct range *range;

	split_released(giveback, process, start);
	split_released(giveback, process, end);
	while ((range = range_overlapping(process->released, start, end)))
		giveback_range_drop(giveback, process->released, range);
}

static bool same_call_site(const struct call_site *a, const struct call_site *b)
{
	return a->stack == b->stack && a->fn == b->fn;
}

static bool same_release(const struct release *a, const struct release *b)
{
	return a->how == b->how && same_call_site(&a->by, &b->by);
}

static bool same_released(const struct released_range *a, const struct released_range *b)
{
	return same_release(&a->first, &b->first) && same_release(&a->last, &b->last) &&
	       same_call_site(&a->mapped_by, &b->mapped_by);
}

/* ---- what had been in use without anybody having seen it ---- */

#define RELEASES_MAX 1024 /* of a process */

static guint release_hash(gconstpointer key)
{
	const struct release *release = key;
	uint64_t hash =
		(release->by.stack ^ (uint64_t)release->by.fn << 8 ^ release->how) * HASH_FACTOR;

	return hash ^ (hash >> 32);
}

static gboolean release_equal(gconstpointer a, gconstpointer b)
{
	return same_release(a, b);
}

GHashTable *release_uses_new(void)
{
	return g_hash_table_new_full(release_hash, release_equal, NULL, g_free);
}

/* Use pages. Number of them that had been released. */
static uint64_t use_pages(struct process *process, const struct memtoll_run *run, uint64_t start,
			  uint64_t end)
{
	uint64_t fresh = (end - start) / PAGE - pagebits_used(process->bits, start, end);

	process->seen_pages += fresh;
	process->stood_pages += with_passed(run, fresh);
	return pagebits_touch(process->bits, start, end);
}

/* So many of those in use are not any more. How many they stood for. */
static double unuse_pages(struct process *process, uint64_t seen)
{
	double stood;

	if (seen >= process->seen_pages) {
		stood = process->stood_pages;
		process->seen_pages = 0;
		process->stood_pages = 0;
		return stood;
	}
	stood = process->stood_pages * seen / process->seen_pages;
	process->seen_pages -= seen;
	process->stood_pages -= stood;
	return stood;
}

/* Of these pages some were in use, and stood for so many. */
static void note_release(struct process *process, const struct release *release, uint64_t pages,
			 uint64_t seen)
{
	bool passed = process->stood_pages > process->seen_pages;
	double stood = unuse_pages(process, seen);
	struct release_use *use;

	/* While all are looked at nothing is to be estimated. */
	if (!passed && !g_hash_table_size(process->release_uses))
		return;
	use = g_hash_table_lookup(process->release_uses, release);
	if (!use) {
		if (g_hash_table_size(process->release_uses) == RELEASES_MAX)
			return;
		use = g_new0(struct release_use, 1);
		use->release = *release;
		g_hash_table_insert(process->release_uses, &use->release, use);
	}
	use->released_pages += pages;
	use->used_pages += stood;
}

/*
 * Pages of a released range that are used, and were never seen in use before: how many of them come
 * again, as far as what was seen tells.
 */
static uint64_t unseen_again(struct process *process, const struct release *release, uint64_t pages)
{
	const struct release_use *use = g_hash_table_lookup(process->release_uses, release);
	uint64_t again;

	if (!use || !pages)
		return 0;
	process->owed_pages += pages * MIN(1.0, use->used_pages / MAX(use->released_pages, 1));
	again = MIN(pages, (uint64_t)process->owed_pages);
	process->owed_pages -= again;
	return again;
}

/* ---- ranges ---- */

/* Ranges all of whose pages are in use again. */
static void drop_reused(struct giveback *giveback, struct process *process)
{
	GTreeNode *node = g_tree_node_first(process->released);

	while (node) {
		struct range *range = g_tree_node_value(node);

		node = g_tree_node_next(node);
		if (!pagebits_released(process->bits, range->start, range->end))
			giveback_range_drop(giveback, process->released, range);
	}
}

/* Replace what is there. Neighbours that differ in nothing but their place become one. */
static void put_released(struct giveback *giveback, struct process *process,
			 const struct released_range *released)
{
	struct released_range *put = g_memdup2(released, sizeof(*released));
	struct range *near;

	if (!giveback->ranges_left && !giveback->swept) {
		drop_reused(giveback, process);
		giveback->swept = true;
	}
	cut_released(giveback, process, put->range.start, put->range.end);
	near = put->range.start ? range_at(process->released, put->range.start - 1) : NULL;
	if (near && same_released((struct released_range *)near, put)) {
		put->range.start = near->start;
		put->range.made_ns = MAX(put->range.made_ns, near->made_ns);
		giveback_range_drop(giveback, process->released, near);
	}
	near = range_at(process->released, put->range.end);
	if (near && same_released((struct released_range *)near, put)) {
		put->range.end = near->end;
		put->range.made_ns = MAX(put->range.made_ns, near->made_ns);
		giveback_range_drop(giveback, process->released, near);
	}
	giveback_range_put(giveback, process->released, &put->range);
}

/* Ranges of other calls that a release covers. */
struct covered {
	GArray *kept;		     /* of struct released_range: their pages not used since */
	struct released_range piece; /* all of one but its place */
};

static void keep_covered(void *context, uint64_t start, uint64_t end)
{
	struct covered *covered = context;

	covered->piece.range.start = start;
	covered->piece.range.end = end;
	g_array_append_val(covered->kept, covered->piece);
}

/* What `by` covers of other calls' ranges, before it takes their place. NULL: nothing. */
static GArray *covered_by(struct process *process, const struct released_range *by)
{
	struct covered covered = {};
	uint64_t start = by->range.start, end = by->range.end;
	struct range *range;

	while (start < end && (range = range_overlapping(process->released, start, end))) {
		const struct released_range *released = (struct released_range *)range;
		uint64_t from = MAX(start, range->start);

		start = range->end;
		if (same_release(&released->first, &by->first))
			continue;
		if (!covered.kept)
			covered.kept = g_array_new(FALSE, FALSE, sizeof(struct released_range));
		covered.piece = *released;
		covered.piece.last = by->first;
		covered.piece.range.made_ns = by->range.made_ns;
		pagebits_each_released(process->bits, from, MIN(start, end), keep_covered,
				       &covered);
	}
	return covered.kept;
}

void released_add(struct giveback *giveback, struct process *process,
		  const struct memtoll_mapping *mapping, uint8_t how, uint64_t start, uint64_t end)
{
	struct release release = {
		.by = { .stack = mapping->stack_id, .fn = mapping->in_fn },
		.how = how,
	};
	struct released_range released = {
		.range = { .start = start, .end = end, .made_ns = mapping->start_ns },
		.first = release,
		.last = release,
	};
	struct giveback_sum *sum;
	uint64_t at = start, seen = 0;
	GArray *covered;
	guint i;

	if (start >= end)
		return;
	covered = covered_by(process, &released);
	sum = giveback_called(giveback, mapping, how);
	sum->largest_bytes = MAX(sum->largest_bytes, end - start);
	while (at < end) {
		struct range *range = range_overlapping(process->extents, at, end);
		uint64_t limit = range ? (range->start > at ? range->start : MIN(range->end, end)) :
					 end,
			 pages;

		pages = pagebits_release(process->bits, at, limit);
		sum->gave_pages += pages;
		seen += pages;
		if (range && range->start <= at) {
			struct extent *extent = (struct extent *)range;

			extent->used_pages -= MIN(extent->used_pages, pages);
		}
		at = limit;
	}
	note_release(process, &release, (end - start) / PAGE, seen);
	put_released(giveback, process, &released);
	for (i = 0; covered && i < covered->len; i++)
		put_released(giveback, process, &g_array_index(covered, struct released_range, i));
	if (covered)
		g_array_free(covered, TRUE);
}

void released_heap_grew(struct giveback *giveback, struct process *process,
			const struct memtoll_mapping *mapping, uint64_t start, uint64_t end)
{
	struct range *range;

	while (start < end && (range = range_overlapping(process->released, start, end))) {
		struct released_range piece = *(struct released_range *)range;

		piece.range.start = MAX(piece.range.start, start);
		piece.range.end = MIN(piece.range.end, end);
		piece.mapped_by.stack = mapping->stack_id;
		piece.mapped_by.fn = mapping->in_fn;
		start = piece.range.end;
		if (piece.last.how == GIVEBACK_BRK)
			put_released(giveback, process, &piece);
	}
}

void released_forget(struct giveback *giveback, struct process *process, uint64_t start,
		     uint64_t end)
{
	cut_released(giveback, process, start, end);
	unuse_pages(process, pagebits_used(process->bits, start, end));
	pagebits_forget(process->bits, start, end);
}

static uint64_t use_released(struct giveback *giveback, struct process *process,
			     const struct memtoll_run *run, struct released_range released,
			     uint64_t start, uint64_t end, const struct call_site *owner)
{
	struct call_site toucher = { .stack = run->stack_id, .fn = run->in_fn };
	const struct call_site *got = owner->stack	       ? owner :
				      released.mapped_by.stack ? &released.mapped_by :
								 &toucher;
	bool late = run->last_ns < released.range.made_ns;
	uint64_t again, unseen;

	if (late) {
		again = pagebits_touched_before(process->bits, start, end);
		giveback_sum_of(giveback, process->pid, released.last.how, &released.last.by)
			->gave_pages += (end - start) / PAGE;
	} else {
		unseen = (end - start) / PAGE - pagebits_used(process->bits, start, end);
		again = use_pages(process, run, start, end);
		again += unseen_again(process, &released.first, unseen - again);
	}
	giveback_reused(giveback, run, released.first.how, &released.first.by, got, again);
	if (late && !same_release(&released.first, &released.last)) {
		released.first = released.last;
		released.range.start = start;
		released.range.end = end;
		put_released(giveback, process, &released);
	}
	return again;
}

uint64_t released_use(struct giveback *giveback, struct process *process,
		      const struct memtoll_run *run, uint64_t start, uint64_t *end,
		      const struct call_site *owner)
{
	struct range *range = range_overlapping(process->released, start, *end);

	if (range && range->start <= start) {
		*end = MIN(*end, range->end);
		return use_released(giveback, process, run, *(struct released_range *)range, start,
				    *end, owner);
	}
	if (range)
		*end = range->start;
	use_pages(process, run, start, *end);
	return 0;
}
