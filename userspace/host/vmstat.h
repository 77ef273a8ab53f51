/* SPDX-License-Identifier: GPL-2.0 */
/* vmstat.h: the machine's own counters (/proc/vmstat), as a difference over a recording. */
#ifndef MEMTOLL_VMSTAT_H
#define MEMTOLL_VMSTAT_H

#include <stdint.h>

struct system_counters;

struct system_counters *system_counters_read(void);
/* Tell what has been counted since the reading. 0, or what each ended it with. */
int system_counters_each(const struct system_counters *since,
			 int (*each)(void *context, const char *name, int64_t count), void *context);
void system_counters_free(struct system_counters *counters);

#endif /* MEMTOLL_VMSTAT_H */
