/* SPDX-License-Identifier: GPL-2.0 */
/*
 * slice.h: what happened becomes facts: records of the ring buffer and the in-kernel sums, written
 * to the recording once per slice.
 */
#ifndef MEMTOLL_SLICE_H
#define MEMTOLL_SLICE_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/wire/losses.h"
#include "budget/budget_executor.h"
#include "host/swapdevice.h"
#include "ledger/ledger.h"
#include "ledger/sampled.h"
#include "ledger/thresholds.h"
#include "python/python.h"
#include "python/python_reader.h"
#include "recording/recording.h"
#include "symbols/symbolize.h"
#include "targets/targets.h"

struct slicer;

struct slicer_config {
	struct memtoll_bpf *bpf;
	struct recording *recording;
	struct symbolizer *symbolizer;
	struct python *python;
	struct python_reader *python_reader;
	struct targets *targets;
	struct ledger *ledger;
	struct watch *watch;
	struct thresholds *thresholds;
	struct sampled *sampled;
	const struct swap_devices *swap_devices;
	bool *swap_types_seen;	/* SWAP_TYPES of them: set here, cleared where the devices change */
	bool launched;		/* ptrace holds the processes at fork and exec */
	void (*meanwhile)(void *context); /* called again and again while a slice is written */
	void *meanwhile_context;
};

struct slicer *slicer_new(const struct slicer_config *config);
void slicer_free(struct slicer *slicer);

/* Callback of the ring buffer; context is the slicer. */
int slicer_on_event(void *context, void *data, size_t size);

/* Before exec's new image is shown to the symbolizer: name the stacks of the old one. */
void slicer_name_stacks(struct slicer *slicer, pid_t pid);

/* Userspace itself has lost something: told with the slice that is being gathered. */
void slicer_lose(struct slicer *slicer, enum memtoll_loss loss, uint64_t count);

/*
 * Write everything of the slice [start_ns, end_ns) and commit it. The caller has drained the ring
 * buffer and read the targets' counters. 0, or -errno of the recording.
 */
int slicer_commit(struct slicer *slicer, uint64_t start_ns, uint64_t end_ns);

#endif /* MEMTOLL_SLICE_H */
