/* SPDX-License-Identifier: GPL-2.0 */
/* top_counters.h: what the kernel counts itself of the whole machine, as rates (/proc/vmstat). */
#ifndef MEMTOLL_TOP_COUNTERS_H
#define MEMTOLL_TOP_COUNTERS_H

#include "top/top_snapshot.h"

struct top_counters;

struct top_counters *top_counters_new(void);
void top_counters_free(struct top_counters *counters);

/* Measures of the snapshot, which has its processes already. */
void top_counters_add(struct top_counters *counters, struct top_snapshot *snapshot);

#endif /* MEMTOLL_TOP_COUNTERS_H */
