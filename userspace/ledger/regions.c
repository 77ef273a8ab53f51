// SPDX-License-Identifier: GPL-2.0
/*
 * regions.c: the mappings that the program made itself, in parts as they are cut and moved.
 *
 * Files are kept too, without an owner: the dynamic loader maps a library's whole span from its
 * file and then puts the bss over the end of it, anonymous and fixed. That is no allocation.
 * Anonymous mappings under the minimum size are kept because mremap may let them grow above it.
 */
#include "ledger/ledger_internal.h"

/* Ranges made after a record began were not unmapped by it: another thread was faster. */
#define WHATEVER_AGE UINT64_MAX

static void part_free(gpointer data)
{
	struct range *part = data;

	if (part->mapped) {
		part->mapped->bytes -= part->end - part->start;
		if (!part->mapped->bytes)
			g_free(part->mapped);
	}
	g_free(part);
}

GTree *regions_new(void)
{
	return ranges_new(part_free);
}

bool region_area(uint8_t area)
{
	return area == AREA_ANON || area == AREA_SHARED || area == AREA_UNKNOWN;
}

bool region_owns(const struct range *part, uint8_t area)
{
	return part->mapped && part->mapped->counted && region_area(area);
}

static struct life *life_of(struct ledger *ledger, const struct process_ledger *process,
			    const struct range *part)
{
	return ledger_life(ledger, process->pid, ALLOCATED_MMAP, part->stack_id);
}

static bool has_life(const struct range *part)
{
	return part->mapped && part->mapped->counted && !part->mapped->inherited;
}

/* It has become an allocation by its size. */
static void count_mapped(struct ledger *ledger, const struct process_ledger *process,
			 const struct range *part)
{
	part->mapped->counted = true;
	if (has_life(part)) {
		struct life *life = life_of(ledger, process, part);

		life->made++;
		life->made_bytes += part->mapped->bytes;
	}
}

static void add_part(struct ledger *ledger, struct process_ledger *process,
		     const struct memtoll_mapping *mapping, uint64_t start, uint64_t end,
		     bool anonymous)
{
	struct range *part = g_new0(struct range, 1);

	part->start = start;
	part->end = end;
	part->made_ns = mapping->start_ns;
	part->stack_id = mapping->stack_id;
	part->fn = ALLOCATED_MMAP;
	if (anonymous) {
		part->mapped = g_new0(struct mapped, 1);
		part->mapped->bytes = end - start;
		if (end - start >= ledger->min_size)
			count_mapped(ledger, process, part);
	}
	ranges_add(process->regions, part);
}

/* Remember a part where it was, as an allocation that ended there. */
static void remember_part(struct process_ledger *process, const struct range *part,
			  uint64_t ended_ns)
{
	struct range copy = *part;

	if (!part->mapped || !part->mapped->counted)
		return;
	copy.mapped = NULL;
	ledger_remember(process, &copy, ended_ns);
}

static void end_part(struct ledger *ledger, struct process_ledger *process, struct range *part,
		     uint64_t ended_ns)
{
	uint64_t bytes = part->end - part->start;

	remember_part(process, part, ended_ns);
	if (has_life(part)) {
		struct life *life = life_of(ledger, process, part);

		life->freed += part->mapped->bytes == bytes;
		life->freed_bytes += bytes;
	}
	g_tree_remove(process->regions, &part->start);
}

/* Split the part that address lies in the middle of. */
static void split_at(GTree *regions, uint64_t address)
{
	struct range *part = range_at(regions, address), *rest;

	if (!part || part->start == address)
		return;
	rest = g_memdup2(part, sizeof(*part));
	rest->start = address;
	part->end = address;
	ranges_add(regions, rest);
}

/* True when all in [start, end) is gone; false when something made after before_ns remains. */
static bool cut_regions(struct ledger *ledger, struct process_ledger *process, uint64_t start,
			uint64_t end, uint64_t before_ns, uint64_t now_ns)
{
	struct range *part;
	bool all = true;

	split_at(process->regions, start);
	split_at(process->regions, end);
	while (start < end && (part = range_overlapping(process->regions, start, end))) {
		start = part->end;
		if (part->made_ns <= before_ns)
			end_part(ledger, process, part, now_ns);
		else
			all = false;
	}
	return all;
}

/* The same of blocks. A block that has lost a part of its memory is none any more. */
static bool end_blocks(struct ledger *ledger, struct process_ledger *process, uint64_t start,
		       uint64_t end, uint64_t before_ns, uint64_t now_ns)
{
	struct range *block;
	bool all = true;

	while (start < end && (block = range_overlapping(process->blocks, start, end))) {
		start = block->end;
		if (block->made_ns <= before_ns)
			ledger_end_block(ledger, process, block, now_ns);
		else
			all = false;
	}
	return all;
}

/*
 * What was in [start, end) is gone. Calls made inside the allocator do not touch blocks: those
 * have records of their own.
 */
static void unmap(struct ledger *ledger, struct process_ledger *process,
		  const struct memtoll_mapping *mapping, uint64_t start, uint64_t end,
		  uint64_t before_ns)
{
	bool all = cut_regions(ledger, process, start, end, before_ns, mapping->start_ns);

	if (!mapping->in_fn)
		all &= end_blocks(ledger, process, start, end, before_ns, mapping->start_ns);
	if (all)
		accesses_forget(ledger->accesses, process->pid, start, end);
}

/* Is every page of [start, end) mapped from a file? */
static bool in_file_span(struct process_ledger *process, uint64_t start, uint64_t end)
{
	while (start < end) {
		const struct range *part = range_at(process->regions, start);

		if (!part || part->mapped)
			return false;
		start = part->end;
	}
	return true;
}

static void on_mmap(struct ledger *ledger, struct process_ledger *process,
		    const struct memtoll_mapping *mapping)
{
	bool anonymous = mapping->flags & MAPPING_ANONYMOUS;
	uint64_t start = mapping->result, end = start + PAGE_CEIL(mapping->len);

	if (anonymous && (mapping->flags & MAPPING_FIXED) && in_file_span(process, start, end)) {
		accesses_forget(ledger->accesses, process->pid, start, end);
		return;
	}
	unmap(ledger, process, mapping, start, end, WHATEVER_AGE);
	if (!mapping->in_fn)
		add_part(ledger, process, mapping, start, end, anonymous);
}

/* Take the ranges of [start, end) that are not younger than the call out of a tree. */
static GPtrArray *take_out(GTree *ranges, uint64_t start, uint64_t end, uint64_t before_ns)
{
	GPtrArray *taken = g_ptr_array_new();
	struct range *range;

	while (start < end && (range = range_overlapping(ranges, start, end))) {
		start = range->end;
		if (range->made_ns > before_ns)
			continue;
		g_tree_steal(ranges, &range->start);
		g_ptr_array_add(taken, range);
	}
	return taken;
}

static void put_back(GTree *ranges, GPtrArray *taken, uint64_t distance, uint64_t now_ns)
{
	guint i;

	for (i = 0; i < taken->len; i++) {
		struct range *range = g_ptr_array_index(taken, i);

		range->start += distance;
		range->end += distance;
		range->made_ns = now_ns;
		ranges_add(ranges, range);
	}
	g_ptr_array_free(taken, TRUE);
}

static void move_regions(struct process_ledger *process, uint64_t start, uint64_t end,
			 uint64_t distance, uint64_t now_ns)
{
	GPtrArray *taken;
	guint i;

	split_at(process->regions, start);
	split_at(process->regions, end);
	taken = take_out(process->regions, start, end, now_ns);
	for (i = 0; i < taken->len; i++)
		remember_part(process, g_ptr_array_index(taken, i), now_ns);
	put_back(process->regions, taken, distance, now_ns);
}

/* Whole blocks move. One that is cut has lost a part of its memory: it ends. */
static void move_blocks(struct ledger *ledger, struct process_ledger *process, uint64_t start,
			uint64_t end, uint64_t distance, uint64_t now_ns)
{
	struct range *first, *last;
	GPtrArray *taken;
	guint i;

	first = range_at(process->blocks, start);
	if (first && first->start < start && first->made_ns <= now_ns)
		ledger_end_block(ledger, process, first, now_ns);
	last = end > start ? range_at(process->blocks, end - 1) : NULL;
	if (last && last->end > end && last->made_ns <= now_ns)
		ledger_end_block(ledger, process, last, now_ns);
	taken = take_out(process->blocks, start, end, now_ns);
	for (i = 0; i < taken->len; i++)
		ledger_remember(process, g_ptr_array_index(taken, i), now_ns);
	put_back(process->blocks, taken, distance, now_ns);
}

/* The part that ends at `edge` now reaches `bytes` further. */
static void grow(struct ledger *ledger, struct process_ledger *process, uint64_t edge,
		 uint64_t bytes)
{
	struct range *part = range_at(process->regions, edge - 1);

	if (!part || part->end != edge)
		return;
	part->end += bytes;
	if (!part->mapped)
		return;
	part->mapped->bytes += bytes;
	if (!part->mapped->counted && part->end - part->start >= ledger->min_size)
		count_mapped(ledger, process, part);
	else if (has_life(part))
		life_of(ledger, process, part)->made_bytes += bytes;
}

/* mremap of length 0 maps shared pages a second time (mremap(2)): the same call allocated them. */
static void duplicate(struct ledger *ledger, struct process_ledger *process,
		      const struct memtoll_mapping *mapping, uint64_t to, uint64_t bytes)
{
	struct range *from = range_at(process->regions, mapping->addr);
	struct memtoll_mapping copy = *mapping;
	bool anonymous;

	if (mapping->in_fn || !from)
		return;
	anonymous = from->mapped;
	copy.stack_id = from->stack_id;
	add_part(ledger, process, &copy, to, to + bytes, anonymous);
}

static void on_mremap(struct ledger *ledger, struct process_ledger *process,
		      const struct memtoll_mapping *mapping)
{
	uint64_t from = mapping->addr, to = mapping->result, now_ns = mapping->start_ns;
	uint64_t before = PAGE_CEIL(mapping->len), after = PAGE_CEIL(mapping->arg);
	uint64_t kept = MIN(before, after);

	if (to != from) {
		/* The kernel refuses to move onto itself: then a record is missing. */
		if (to < from + before && from < to + after)
			unmap(ledger, process, mapping, from, from + before, WHATEVER_AGE);
		unmap(ledger, process, mapping, to, to + after, WHATEVER_AGE);
	} else if (after > before) {
		unmap(ledger, process, mapping, from + before, from + after, WHATEVER_AGE);
	}
	if (!before) {
		duplicate(ledger, process, mapping, to, after);
		return;
	}
	if (before > after)
		unmap(ledger, process, mapping, from + after, from + before, now_ns);
	if (to != from) {
		accesses_move(ledger->accesses, process->pid, from, to, kept);
		if (mapping->in_fn) {
			cut_regions(ledger, process, from, from + kept, now_ns, now_ns);
			return;
		}
		move_blocks(ledger, process, from, from + kept, to - from, now_ns);
		move_regions(process, from, from + kept, to - from, now_ns);
	}
	if (after > before && !mapping->in_fn)
		grow(ledger, process, to + before, after - before);
}

/* Addresses that a record cannot hold: it is not the kernel's. */
static bool is_plausible(const struct memtoll_mapping *mapping)
{
	const uint64_t top = 1ULL << 57; /* five-level paging: 56 bits are the user's */

	return mapping->result >= 0 && mapping->addr < top && mapping->len < top &&
	       (mapping->map_fn != MAP_FN_MREMAP || mapping->arg < top) &&
	       (uint64_t)mapping->result < top && !(mapping->addr % PAGE);
}

void regions_change(struct ledger *ledger, struct process_ledger *process,
		    const struct memtoll_mapping *mapping)
{
	uint64_t start = mapping->addr, end = start + PAGE_CEIL(mapping->len);

	switch (mapping->map_fn) {
	case MAP_FN_MMAP:
		/* What was asked of mmap is a hint that need not be aligned. */
		if (mapping->result > 0 && !(mapping->result % PAGE) && mapping->len < 1ULL << 57)
			on_mmap(ledger, process, mapping);
		break;
	case MAP_FN_MUNMAP:
		if (is_plausible(mapping))
			unmap(ledger, process, mapping, start, end, mapping->start_ns);
		break;
	case MAP_FN_MREMAP:
		if (is_plausible(mapping) && mapping->arg && !(mapping->result % PAGE))
			on_mremap(ledger, process, mapping);
		break;
	case MAP_FN_BRK:
		/* The heap's end moved down: the pages above are gone. */
		if (mapping->result > 0 && (uint64_t)mapping->result < mapping->addr)
			accesses_forget(ledger->accesses, process->pid,
					PAGE_CEIL((uint64_t)mapping->result),
					PAGE_CEIL(mapping->addr));
		break;
	}
}

struct inheritance {
	GTree *to;
	GHashTable *mapped; /* the parent's struct mapped -> the child's */
};

static gboolean inherit_part(gpointer key, gpointer value, gpointer data)
{
	struct range *part = g_memdup2(value, sizeof(struct range));
	struct inheritance *inheritance = data;

	(void)key;
	if (part->mapped) {
		struct mapped *copy = g_hash_table_lookup(inheritance->mapped, part->mapped);

		if (!copy) {
			copy = g_memdup2(part->mapped, sizeof(*copy));
			copy->inherited = true;
			g_hash_table_insert(inheritance->mapped, part->mapped, copy);
		}
		part->mapped = copy;
	}
	ranges_add(inheritance->to, part);
	return FALSE;
}

void regions_inherit(GTree *from, GTree *to)
{
	struct inheritance inheritance = { .to = to };

	inheritance.mapped = g_hash_table_new(NULL, NULL);
	g_tree_foreach(from, inherit_part, &inheritance);
	g_hash_table_destroy(inheritance.mapped);
}
