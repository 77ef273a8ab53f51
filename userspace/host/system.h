/* SPDX-License-Identifier: GPL-2.0 */
/* system.h: the machine's own counters (/proc/vmstat), as a difference over a recording. */
#ifndef MEMTOLL_SYSTEM_H
#define MEMTOLL_SYSTEM_H

#include "recording/recording.h"

struct system_counters;

struct system_counters *system_counters_read(void);
/* Write what has been counted since the reading. 0 or -errno. */
int system_counters_record(const struct system_counters *since, struct recording *recording);
void system_counters_free(struct system_counters *counters);

#endif /* MEMTOLL_SYSTEM_H */
