/* SPDX-License-Identifier: GPL-2.0 */
/* machine_facts.h: what is written of the machine and its memory cgroups. */
#ifndef MEMTOLL_MACHINE_FACTS_H
#define MEMTOLL_MACHINE_FACTS_H

#include <stdbool.h>

struct memory_cgroups;
struct recording;
struct swap_devices;
struct system_counters;

/*
 * Limits, usage and what was counted of all groups; of one that has been removed, what was known
 * last stays. 0 or -errno.
 */
int memory_cgroups_record(struct memory_cgroups *groups, struct recording *recording);

/*
 * All devices, with the numbers that follow from types_seen (NULL: none seen). Again where more
 * numbers have been seen. 0 or -errno.
 */
int swap_devices_record(const struct swap_devices *devices, const bool *types_seen,
			struct recording *recording);

/* What has been counted since the reading. 0 or -errno. */
int system_counters_record(const struct system_counters *since, struct recording *recording);

#endif /* MEMTOLL_MACHINE_FACTS_H */
