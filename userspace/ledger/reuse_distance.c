// SPDX-License-Identifier: GPL-2.0
#include "ledger/reuse_distance.h"

#include <glib.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"

#define SLOTS_FIRST 64 /* of the clock */
#define BUCKETS (REUSE_STEPS * 62)

struct entry {
	uint64_t block;
	uint32_t slot; /* when it was used last; 0: the entry is free */
};

struct reuse {
	uint32_t max_blocks;
	uint64_t limit; /* hashes below are followed */
	double rate;
	/* Blocks by hash, linear probing; a power of two, at most half full. */
	struct entry *entries;
	uint32_t entry_count;
	uint32_t followed;
	/*
	 * A clock that ticks at each use of a followed block. Which ticks are some block's last use
	 * is kept as a Fenwick tree (Fenwick, A New Data Structure for Cumulative Frequency Tables,
	 * 1994): how many are later than a given one is a sum of it.
	 */
	uint32_t *tree; /* [1, slots] */
	uint32_t slots;
	uint32_t now; /* last tick */
	uint64_t uses;
	bool uncounted; /* there were uses that were not counted */
	double first;
	double max_distance;
	double *buckets; /* NULL: no use again yet */
};

static uint64_t hash_of(uint64_t block)
{
	/* The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014). */
	block += HASH_GOLDEN;
	block = (block ^ block >> 30) * 0xbf58476d1ce4e5b9ULL;
	block = (block ^ block >> 27) * 0x94d049bb133111ebULL;
	return block ^ block >> 31;
}

struct reuse *reuse_new(uint32_t max_blocks)
{
	struct reuse *reuse = g_new0(struct reuse, 1);

	reuse->max_blocks = MAX(max_blocks, 2);
	reuse->limit = UINT64_MAX;
	reuse->rate = 1;
	return reuse;
}

void reuse_free(struct reuse *reuse)
{
	if (!reuse)
		return;
	g_free(reuse->entries);
	g_free(reuse->tree);
	g_free(reuse->buckets);
	g_free(reuse);
}

/* ---- the clock ---- */

static void tree_add(struct reuse *reuse, uint32_t slot, int32_t change)
{
	for (; slot <= reuse->slots; slot += slot & -slot)
		reuse->tree[slot] += change;
}

static uint32_t tree_up_to(const struct reuse *reuse, uint32_t slot)
{
	uint32_t sum = 0;

	for (; slot; slot -= slot & -slot)
		sum += reuse->tree[slot];
	return sum;
}

static int by_slot(const void *a, const void *b)
{
	const struct entry *const *x = a, *const *y = b;

	return (*x)->slot < (*y)->slot ? -1 : (*x)->slot > (*y)->slot;
}

/* The clock has run out: it begins anew, with the followed blocks in their order. */
static void clock_restart(struct reuse *reuse)
{
	struct entry **order = g_new(struct entry *, MAX(reuse->followed, 1));
	uint32_t i, count = 0, slots = SLOTS_FIRST;

	for (i = 0; i < reuse->entry_count; i++)
		if (reuse->entries[i].slot)
			order[count++] = &reuse->entries[i];
	qsort(order, count, sizeof(*order), by_slot);
	while (slots < 4 * count)
		slots *= 2;
	if (slots != reuse->slots) {
		g_free(reuse->tree);
		reuse->tree = g_new(uint32_t, slots + 1);
		reuse->slots = slots;
	}
	memset(reuse->tree, 0, (slots + 1) * sizeof(*reuse->tree));
	for (i = 0; i < count; i++) {
		order[i]->slot = i + 1;
		tree_add(reuse, i + 1, 1);
	}
	reuse->now = count;
	g_free(order);
}

/* ---- the followed blocks ---- */

/* Where a block is, or would be. */
static struct entry *entry_find(const struct reuse *reuse, uint64_t block, uint64_t hash)
{
	uint32_t mask = reuse->entry_count - 1, at = hash & mask;

	while (reuse->entries[at].slot && reuse->entries[at].block != block)
		at = (at + 1) & mask;
	return &reuse->entries[at];
}

/* Make the table anew, of that size, with those blocks that are still below the limit. */
static void entries_rebuild(struct reuse *reuse, uint32_t entry_count)
{
	struct entry *old = reuse->entries;
	uint32_t i, old_count = reuse->entry_count;

	reuse->entries = g_new0(struct entry, entry_count);
	reuse->entry_count = entry_count;
	reuse->followed = 0;
	for (i = 0; i < old_count; i++) {
		uint64_t hash = hash_of(old[i].block);

		if (!old[i].slot || hash > reuse->limit)
			continue;
		*entry_find(reuse, old[i].block, hash) = old[i];
		reuse->followed++;
	}
	g_free(old);
}

/* Follow half of the blocks: counts that were made at the higher rate now weigh half. */
static void halve(struct reuse *reuse)
{
	uint32_t i;

	reuse->limit /= 2;
	reuse->rate /= 2;
	reuse->first /= 2;
	for (i = 0; reuse->buckets && i < BUCKETS; i++)
		reuse->buckets[i] /= 2;
	entries_rebuild(reuse, reuse->entry_count);
	clock_restart(reuse);
}

void reuse_shrink(struct reuse *reuse)
{
	reuse->max_blocks = MAX(reuse->max_blocks / 2, 2);
	while (reuse->followed > reuse->max_blocks)
		halve(reuse);
	while (reuse->entry_count > 8 && reuse->entry_count > 4 * reuse->max_blocks)
		entries_rebuild(reuse, reuse->entry_count / 2);
}

uint32_t reuse_followed(const struct reuse *reuse)
{
	return reuse->followed;
}

/* ---- uses ---- */

static uint32_t bucket_of(uint64_t distance)
{
	uint32_t octave;

	if (distance < REUSE_STEPS)
		return distance;
	octave = 63 - __builtin_clzll(distance) - __builtin_ctz(REUSE_STEPS);
	return REUSE_STEPS * octave + (distance >> octave);
}

static uint64_t bucket_low(uint32_t bucket)
{
	uint32_t octave = bucket / REUSE_STEPS;

	return octave < 2 ? bucket : (uint64_t)(REUSE_STEPS + bucket % REUSE_STEPS) << (octave - 1);
}

static void count_distance(struct reuse *reuse, uint32_t sampled)
{
	double distance = sampled / reuse->rate;

	if (!reuse->buckets)
		reuse->buckets = g_new0(double, BUCKETS);
	reuse->buckets[MIN(bucket_of((uint64_t)distance), BUCKETS - 1)]++;
	reuse->max_distance = MAX(reuse->max_distance, distance);
}

void reuse_use(struct reuse *reuse, uint64_t block, bool counted)
{
	uint64_t hash = hash_of(block);
	struct entry *entry;

	reuse->uses += counted;
	reuse->uncounted |= !counted;
	if (hash > reuse->limit)
		return;
	if (2 * (reuse->followed + 1) > reuse->entry_count)
		entries_rebuild(reuse, MAX(2 * reuse->entry_count, 8));
	if (reuse->now >= reuse->slots)
		clock_restart(reuse);
	entry = entry_find(reuse, block, hash);
	if (entry->slot) {
		if (counted)
			count_distance(reuse, reuse->followed - tree_up_to(reuse, entry->slot));
		tree_add(reuse, entry->slot, -1);
	} else {
		entry->block = block;
		reuse->followed++;
		reuse->first += counted;
	}
	entry->slot = ++reuse->now;
	tree_add(reuse, entry->slot, 1);
	while (reuse->followed > reuse->max_blocks)
		halve(reuse);
}

/*
 * What the samples say of all uses. They may hold more or fewer uses than their rate would give, by
 * some few blocks that are used very often; the difference belongs to the shortest distance (the
 * paper's SHARDS-adj).
 */
static double adjustment(const struct reuse *reuse)
{
	double sampled = reuse->first;
	uint32_t i;

	for (i = 0; reuse->buckets && i < BUCKETS; i++)
		sampled += reuse->buckets[i];
	return reuse->rate < 1 && reuse->buckets ? reuse->uses - sampled / reuse->rate : 0;
}

void reuse_sum_up(const struct reuse *reuse, struct reuse_summary *summary)
{
	summary->uses = reuse->uses;
	summary->different = reuse->followed / reuse->rate;
	summary->first = MIN(reuse->first / reuse->rate, (double)reuse->uses);
	if (!reuse->buckets && !reuse->uncounted) {
		/* Not one of the samples was used again: then none is taken to be. */
		summary->different = reuse->uses;
		summary->first = reuse->uses;
	}
	summary->rate = reuse->rate;
	/* Each block is followed or not, independently: binomial. */
	summary->error = reuse->followed ? 1.96 * sqrt((1 - reuse->rate) / reuse->followed) : 0;
	summary->max_distance = reuse->max_distance;
}

void reuse_each(const struct reuse *reuse, reuse_fn *each, void *context)
{
	double left = adjustment(reuse), uses;
	uint32_t i;

	for (i = 0; i < BUCKETS; i++) {
		uses = reuse->buckets ? reuse->buckets[i] / reuse->rate : 0;
		/* Too many: taken off the shortest distances there are. */
		if (left) {
			uses += left;
			left = MIN(uses, 0);
			uses = MAX(uses, 0);
		}
		if (uses > 0)
			each(context, bucket_low(i), bucket_low(i + 1), uses);
	}
}
