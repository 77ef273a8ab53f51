/* SPDX-License-Identifier: GPL-2.0 */
/* vmstat.h: counters of the whole machine (/proc/vmstat), as differences over a recording. */
#ifndef MEMTOLL_VMSTAT_H
#define MEMTOLL_VMSTAT_H

#include <stdint.h>

struct system_counters;

struct system_counters *system_counters_read(void);
/* Call each() with the differences from `since`. 0, or the callback's error. */
int system_counters_each(const struct system_counters *since,
			 int (*each)(void *context, const char *name, int64_t count),
			 void *context);
void system_counters_free(struct system_counters *counters);

#endif /* MEMTOLL_VMSTAT_H */
