/* SPDX-License-Identifier: GPL-2.0 */
/*
 * consumers.h: the modules that events are given to: dispatch.c gives each to those that consume
 * its kind; slice_writer.c writes what they have gathered, once per slice.
 */
#ifndef MEMTOLL_CONSUMERS_H
#define MEMTOLL_CONSUMERS_H

#include <stdint.h>

#include "bpf/wire/losses.h"

struct memtoll_bpf;
struct observers;
struct python;
struct recording;
struct symbolizer;

struct consumers_config {
	struct memtoll_bpf *bpf;
	struct recording *recording;
	struct symbolizer *symbolizer;
	struct python *python;
	struct observers *observers;
	uint64_t min_size;
	uint64_t sample; /* as sampled_new() has it */
};

struct consumers {
	struct ledger *ledger;
	struct giveback *giveback;
	struct advised *advised;
	struct thresholds *thresholds;
	struct sampled *sampled;
	struct trim_reuse *trim_reuse;
	struct reads *reads;
	struct fills *fills;
	struct huge_looks *huge_looks;
	struct latency *latency;
	struct cpu_samples *samples;
	struct hit_counts *hits;
	struct mapped_files *areas;
	struct kernel_stacks *kernel_stacks;
	struct past_cache *past_cache;
	uint64_t lost[MEMTOLL_LOSS_COUNT]; /* in userspace, since the last slice */
};

/* Those with state of each process are added to config->observers. */
struct consumers *consumers_new(const struct consumers_config *config);
void consumers_free(struct consumers *consumers);

/* Something was lost in userspace: written with the present slice. */
void consumers_lose(struct consumers *consumers, enum memtoll_loss loss, uint64_t count);

#endif /* MEMTOLL_CONSUMERS_H */
