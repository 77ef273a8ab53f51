// SPDX-License-Identifier: GPL-2.0
/*
 * released.c: memory given back in place. A gift is a range of addresses and who gave them back; the
 * bits of its pages tell which are still away.
 */
#include "ledger/giveback_internal.h"

/* Let no gift reach across an address. */
static void split_gift(struct giveback *giveback, struct process *process, uint64_t address)
{
	struct range *range = range_at(process->gifts, address);
	struct gift *rest;

	if (!range || range->start == address)
		return;
	rest = g_memdup2(range, sizeof(struct gift));
	rest->range.start = address;
	range->end = address;
	giveback_range_put(giveback, process->gifts, &rest->range);
}

static void cut_gifts(struct giveback *giveback, struct process *process, uint64_t start,
		      uint64_t end)
{
	struct range *range;

	split_gift(giveback, process, start);
	split_gift(giveback, process, end);
	while ((range = range_overlapping(process->gifts, start, end)))
		giveback_range_drop(giveback, process->gifts, range);
}

static bool same_party(const struct party *a, const struct party *b)
{
	return a->stack == b->stack && a->fn == b->fn;
}

static bool same_giver(const struct giver *a, const struct giver *b)
{
	return a->how == b->how && same_party(&a->by, &b->by);
}

static bool same_gift(const struct gift *a, const struct gift *b)
{
	return same_giver(&a->gave, &b->gave) && same_giver(&a->last, &b->last) &&
	       same_party(&a->got, &b->got);
}

/* Gifts of which everything is back tell nothing any more. */
static void drop_empty_gifts(struct giveback *giveback, struct process *process)
{
	GTreeNode *node = g_tree_node_first(process->gifts);

	while (node) {
		struct range *range = g_tree_node_value(node);

		node = g_tree_node_next(node);
		if (!pagebits_given(process->bits, range->start, range->end))
			giveback_range_drop(giveback, process->gifts, range);
	}
}

/* Replace what is there. Neighbours that tell the same become one. */
static void put_gift(struct giveback *giveback, struct process *process, const struct gift *gift)
{
	struct gift *put = g_memdup2(gift, sizeof(*gift));
	struct range *near;

	if (!giveback->ranges_left && !giveback->swept) {
		drop_empty_gifts(giveback, process);
		giveback->swept = true;
	}
	cut_gifts(giveback, process, put->range.start, put->range.end);
	near = put->range.start ? range_at(process->gifts, put->range.start - 1) : NULL;
	if (near && same_gift((struct gift *)near, put)) {
		put->range.start = near->start;
		put->range.made_ns = MAX(put->range.made_ns, near->made_ns);
		giveback_range_drop(giveback, process->gifts, near);
	}
	near = range_at(process->gifts, put->range.end);
	if (near && same_gift((struct gift *)near, put)) {
		put->range.end = near->end;
		put->range.made_ns = MAX(put->range.made_ns, near->made_ns);
		giveback_range_drop(giveback, process->gifts, near);
	}
	giveback_range_put(giveback, process->gifts, &put->range);
}

/* Gifts that another gift passes over. */
struct passed {
	GArray *kept;		/* of struct gift: the pages that are away */
	struct gift piece;	/* all of such a gift but where it lies */
};

static void keep_passed(void *context, uint64_t start, uint64_t end)
{
	struct passed *passed = context;

	passed->piece.range.start = start;
	passed->piece.range.end = end;
	g_array_append_val(passed->kept, passed->piece);
}

/* What is away in the gifts of others there, before `by` takes their place. NULL: nothing. */
static GArray *passed_over(struct process *process, const struct gift *by)
{
	struct passed passed = {};
	uint64_t start = by->range.start, end = by->range.end;
	struct range *range;

	while (start < end && (range = range_overlapping(process->gifts, start, end))) {
		const struct gift *gift = (struct gift *)range;
		uint64_t from = MAX(start, range->start);

		start = range->end;
		if (same_giver(&gift->gave, &by->gave))
			continue;
		if (!passed.kept)
			passed.kept = g_array_new(FALSE, FALSE, sizeof(struct gift));
		passed.piece = *gift;
		passed.piece.last = by->gave;
		passed.piece.range.made_ns = by->range.made_ns;
		pagebits_each_given(process->bits, from, MIN(start, end), keep_passed, &passed);
	}
	return passed.kept;
}

/* The pages stay where they are, those in use are gone. */
void gifts_give(struct giveback *giveback, struct process *process,
		const struct memtoll_mapping *mapping, uint8_t how, uint64_t start, uint64_t end)
{
	struct giver giver = {
		.by = { .stack = mapping->stack_id, .fn = mapping->in_fn },
		.how = how,
	};
	struct gift gift = {
		.range = { .start = start, .end = end, .made_ns = mapping->start_ns },
		.gave = giver,
		.last = giver,
	};
	struct giveback_sum *sum;
	uint64_t at = start;
	GArray *passed;
	guint i;

	if (start >= end)
		return;
	passed = passed_over(process, &gift);
	sum = giveback_given(giveback, process->pid, how, &giver.by);
	sum->calls++;
	sum->largest_bytes = MAX(sum->largest_bytes, end - start);
	while (at < end) {
		struct range *range = range_overlapping(process->extents, at, end);
		uint64_t limit = range ? (range->start > at ? range->start : MIN(range->end, end)) :
				 end, pages;

		pages = pagebits_give(process->bits, at, limit);
		sum->gave_pages += pages;
		if (range && range->start <= at) {
			struct extent *extent = (struct extent *)range;

			extent->used_pages -= MIN(extent->used_pages, pages);
		}
		at = limit;
	}
	put_gift(giveback, process, &gift);
	for (i = 0; passed && i < passed->len; i++)
		put_gift(giveback, process, &g_array_index(passed, struct gift, i));
	if (passed)
		g_array_free(passed, TRUE);
}

/* The addresses are valid again: by whom. */
void gifts_heap_grew(struct giveback *giveback, struct process *process,
		      const struct memtoll_mapping *mapping, uint64_t start, uint64_t end)
{
	struct range *range;

	while (start < end && (range = range_overlapping(process->gifts, start, end))) {
		struct gift piece = *(struct gift *)range;

		piece.range.start = MAX(piece.range.start, start);
		piece.range.end = MIN(piece.range.end, end);
		piece.got.stack = mapping->stack_id;
		piece.got.fn = mapping->in_fn;
		start = piece.range.end;
		if (piece.last.how == GIVEBACK_BRK)
			put_gift(giveback, process, &piece);
	}
}

void gifts_forget(struct giveback *giveback, struct process *process, uint64_t start,
		   uint64_t end)
{
	cut_gifts(giveback, process, start, end);
	pagebits_forget(process->bits, start, end);
}

static uint64_t use_gift(struct giveback *giveback, struct process *process,
			 const struct memtoll_run *run, struct gift gift, uint64_t start,
			 uint64_t end, const struct party *owner)
{
	struct party toucher = { .stack = run->stack_id, .fn = run->in_fn };
	const struct party *got = owner->stack ? owner : gift.got.stack ? &gift.got : &toucher;
	bool late = run->last_ns < gift.range.made_ns;
	uint64_t again;

	if (late) {
		again = pagebits_touched_before(process->bits, start, end);
		giveback_given(giveback, process->pid, gift.last.how, &gift.last.by)->gave_pages +=
			(end - start) / PAGE;
	} else {
		again = pagebits_touch(process->bits, start, end);
	}
	giveback_again(giveback, run, gift.gave.how, &gift.gave.by, got, again);
	if (late && !same_giver(&gift.gave, &gift.last)) {
		gift.gave = gift.last;
		gift.range.start = start;
		gift.range.end = end;
		put_gift(giveback, process, &gift);
	}
	return again;
}

uint64_t gifts_use(struct giveback *giveback, struct process *process,
		   const struct memtoll_run *run, uint64_t start, uint64_t *end,
		   const struct party *owner)
{
	struct range *range = range_overlapping(process->gifts, start, *end);

	if (range && range->start <= start) {
		*end = MIN(*end, range->end);
		return use_gift(giveback, process, run, *(struct gift *)range, start, *end, owner);
	}
	if (range)
		*end = range->start;
	pagebits_touch(process->bits, start, *end);
	return 0;
}
