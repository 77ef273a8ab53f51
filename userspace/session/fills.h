/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fills.h: pages of files that came into the page cache for the targets: for the first time or
 * again, in a sweep or in no order, and how many others came between two times.
 */
#ifndef MEMTOLL_FILLS_H
#define MEMTOLL_FILLS_H

#include <linux/types.h>

#include "bpf/wire/records.h"
#include "host/mapped_files.h"
#include "recording/recording.h"

struct fills;

struct fills *fills_new(void);
void fills_free(struct fills *fills);

void fills_add(struct fills *fills, const struct memtoll_fill *fill);

/* What uses pages: a run of faults, and of reads. */
void fills_fault(struct fills *fills, const struct memtoll_run *run);
void fills_read(struct fills *fills, const struct memtoll_read *run);

/* Write what has changed. paths: of files that were mapped. 0, or -errno of the recording. */
int fills_commit(struct fills *fills, struct recording *recording,
		 const struct mapped_files *paths);

#endif /* MEMTOLL_FILLS_H */
