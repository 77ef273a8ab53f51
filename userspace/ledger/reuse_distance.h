/* SPDX-License-Identifier: GPL-2.0 */
/*
 * reuse_distance.h: how far apart the uses of the same block are, and so what caches of each size
 * would miss.
 *
 * The distance of a use is the number of different blocks used since the same block was used last
 * (Mattson et al., Evaluation techniques for storage hierarchies, IBM Systems Journal 9(2), 1970):
 * a cache that throws out what was used longest ago, of more blocks than the distance, would have
 * had it. Exact until too many different blocks have come; then blocks are sampled by a hash of
 * their number, and distances and counts scaled by the rate (Waldspurger, Park, Garthwaite and
 * Ahmad, Efficient MRC Construction with SHARDS, FAST '15). As the rate is halved each time that
 * the memory is full, there are always between a half and the whole of the blocks that it can hold.
 *
 * Pure: keys in, sums out.
 */
#ifndef MEMTOLL_REUSE_DISTANCE_H
#define MEMTOLL_REUSE_DISTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Distances of less than so many blocks each have a bucket; above, so many for each power of two.
 */
#define REUSE_STEPS 16

struct reuse;

/*
 * max_blocks: different blocks that are followed at once; memory is 40 bytes each, used as it
 * comes.
 */
struct reuse *reuse_new(uint32_t max_blocks);
void reuse_free(struct reuse *reuse);

/*
 * A block is used. counted: else only its place among the others changes, as of a page that was
 * touched for the first time and not brought back. Any number will do that identifies the block.
 */
void reuse_use(struct reuse *reuse, uint64_t block, bool counted);

/* Follow half as many blocks from now on: memory is needed elsewhere. */
void reuse_shrink(struct reuse *reuse);

/* Blocks that are followed now. */
uint32_t reuse_followed(const struct reuse *reuse);

struct reuse_summary {
	uint64_t uses;	  /* counted ones; exact */
	double different; /* blocks, used at least once in any way */
	double first;	  /* counted uses of a block not seen before: no cache would have it */
	double rate;	  /* 1: all is exact */
	double error;	  /* of different, relative: 1.96 standard deviations; 0 if exact */
	double max_distance;
};

void reuse_sum_up(const struct reuse *reuse, struct reuse_summary *summary);

typedef void reuse_fn(void *context, uint64_t low, uint64_t high, double uses);

/*
 * Counted uses by distance, in blocks: low <= distance < high. Ascending; empty buckets are left
 * out. Together with the first uses they add up to all.
 */
void reuse_each(const struct reuse *reuse, reuse_fn *each, void *context);

#endif /* MEMTOLL_REUSE_DISTANCE_H */
