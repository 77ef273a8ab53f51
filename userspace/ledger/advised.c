// SPDX-License-Identifier: GPL-2.0
#include "ledger/advised.h"

#include <glib.h>

#include "base/hash.h"
#include "base/ranges.h"
#include "events/passed.h"
#include "events/refined.h"

/* Of all processes together, 100 bytes each; what is beyond is not followed. */
#define RANGES_MAX 65536

struct advised {
	GHashTable *processes; /* pid -> ranges: struct range, flags are the advice */
	GHashTable *sums;      /* struct advised_sum, its own key */
	uint32_t ranges_left;
};

static guint sum_hash(gconstpointer key)
{
	const struct advised_sum *sum = key;
	uint64_t hash = (sum->stack_id ^ (uint64_t)sum->pid << 32 ^ sum->advice << 16 ^
			 sum->fault_class << 1 ^ sum->major) *
			HASH_FACTOR;

	return hash ^ (hash >> 32);
}

static gboolean sum_equal(gconstpointer a, gconstpointer b)
{
	const struct advised_sum *x = a, *y = b;

	return x->pid == y->pid && x->advice == y->advice && x->stack_id == y->stack_id &&
	       x->fault_class == y->fault_class && x->major == y->major;
}

static struct advised_sum *sum_get(struct advised *advised, const struct advised_sum *key)
{
	struct advised_sum *sum = g_hash_table_lookup(advised->sums, key);

	if (!sum) {
		sum = g_memdup2(key, sizeof(*key));
		g_hash_table_insert(advised->sums, sum, sum);
	}
	return sum;
}

static void ranges_free(gpointer ranges)
{
	g_tree_destroy(ranges);
}

struct advised *advised_new(void)
{
	struct advised *advised = g_new0(struct advised, 1);

	advised->processes = g_hash_table_new_full(NULL, NULL, NULL, ranges_free);
	advised->sums = g_hash_table_new_full(sum_hash, sum_equal, NULL, g_free);
	advised->ranges_left = RANGES_MAX;
	return advised;
}

void advised_free(struct advised *advised)
{
	if (!advised)
		return;
	g_hash_table_destroy(advised->processes);
	g_hash_table_destroy(advised->sums);
	g_free(advised);
}

void advised_restart(struct advised *advised, pid_t pid)
{
	GTree *ranges = g_hash_table_lookup(advised->processes, GINT_TO_POINTER(pid));

	if (!ranges)
		return;
	advised->ranges_left += g_tree_nnodes(ranges);
	g_hash_table_remove(advised->processes, GINT_TO_POINTER(pid));
}

static void put(struct advised *advised, GTree *ranges, const struct range *like, uint64_t start,
		uint64_t end)
{
	struct range *range;

	if (start >= end || !advised->ranges_left)
		return;
	advised->ranges_left--;
	range = g_memdup2(like, sizeof(*like));
	range->start = start;
	range->end = end;
	ranges_add(ranges, range);
}

/* Of what lies in [start, end) nothing is advised any more. each: is told of every piece of it. */
static void cut(struct advised *advised, GTree *ranges, uint64_t start, uint64_t end,
		void (*each)(struct advised *advised, const struct range *range, uint64_t pages,
			     const struct memtoll_run *run),
		const struct memtoll_run *run)
{
	struct range *found, range;

	while ((found = range_overlapping(ranges, start, end))) {
		range = *found;
		g_tree_remove(ranges, &range.start);
		advised->ranges_left++;
		if (each)
			each(advised, &range,
			     (MIN(range.end, end) - MAX(range.start, start)) / PAGE, run);
		put(advised, ranges, &range, range.start, MIN(range.end, start));
		put(advised, ranges, &range, MAX(range.start, end), range.end);
	}
}

static void advise(struct advised *advised, const struct memtoll_mapping *mapping)
{
	gpointer pid = GUINT_TO_POINTER(mapping->tgid);
	GTree *ranges = g_hash_table_lookup(advised->processes, pid);
	const struct range range = { .flags = mapping->arg, .stack_id = mapping->stack_id };
	struct advised_sum *sum;

	if (!ranges) {
		ranges = ranges_new(g_free);
		g_hash_table_insert(advised->processes, pid, ranges);
	}
	cut(advised, ranges, mapping->addr, mapping->addr + PAGE_CEIL(mapping->len), NULL, NULL);
	put(advised, ranges, &range, mapping->addr, mapping->addr + PAGE_CEIL(mapping->len));
	sum = sum_get(advised, &(struct advised_sum){ .pid = mapping->tgid,
						      .advice = mapping->arg,
						      .stack_id = mapping->stack_id });
	sum->calls++;
	sum->bytes += mapping->len;
}

void advised_mapping(struct advised *advised, const struct memtoll_mapping *mapping)
{
	GTree *ranges = g_hash_table_lookup(advised->processes, GUINT_TO_POINTER(mapping->tgid));
	uint64_t at = mapping->map_fn == MAP_FN_MMAP ? (uint64_t)mapping->result : mapping->addr;

	/* Records come from the kernel; addresses that cannot be are ignored all the same. */
	if (mapping->result < 0 || at >= 1ULL << 57 || mapping->len >= 1ULL << 57 || at % PAGE)
		return;
	switch (mapping->map_fn) {
	case MAP_FN_MADVISE:
		if (mapping->arg == ADVISED_COLD || mapping->arg == ADVISED_DONTNEED)
			advise(advised, mapping);
		break;
	case MAP_FN_MMAP:
	case MAP_FN_MUNMAP:
	case MAP_FN_MREMAP:
		if (ranges)
			cut(advised, ranges, at, at + PAGE_CEIL(mapping->len), NULL, NULL);
		break;
	}
}

/* Whether such a fault brings back what the advice has let go. */
static bool comes_of(uint64_t advice, const struct memtoll_run *run)
{
	switch (run->fault_class) {
	case FAULT_SWAP:
	case FAULT_SWAP_ZSWAP:
	case FAULT_SWAP_ZERO:
	case FAULT_SWAP_ZRAM:
		return advice == ADVISED_COLD;
	case FAULT_FILE_AGAIN:
		return true;
	case FAULT_FILE:
	case FAULT_SHARED:
		return advice == ADVISED_DONTNEED || run->flags & RUN_MAJOR;
	default:
		return false;
	}
}

static void came_back(struct advised *advised, const struct range *range, uint64_t pages,
		      const struct memtoll_run *run)
{
	struct advised_sum *sum;

	if (!pages || !comes_of(range->flags, run))
		return;
	sum = sum_get(advised, &(struct advised_sum){ .pid = run->tgid,
						      .advice = range->flags,
						      .stack_id = range->stack_id,
						      .fault_class = run->fault_class,
						      .major = !!(run->flags & RUN_MAJOR) });
	pages = with_passed(run, pages);
	sum->again_pages += pages;
	sum->again_faults += MAX(1, pages * run->faults / run->pages);
}

void advised_run(struct advised *advised, const struct memtoll_run *run)
{
	GTree *ranges = g_hash_table_lookup(advised->processes, GUINT_TO_POINTER(run->tgid));
	uint64_t start = PAGE_FLOOR(run->address);

	if (ranges && run->pages)
		cut(advised, ranges, start, start + run->pages * PAGE, came_back, run);
}

void advised_drain(struct advised *advised, advised_fn *on_sum, void *context)
{
	GHashTableIter iter;
	gpointer sum;

	g_hash_table_iter_init(&iter, advised->sums);
	while (g_hash_table_iter_next(&iter, NULL, &sum)) {
		on_sum(context, sum);
		g_hash_table_iter_remove(&iter);
	}
}
