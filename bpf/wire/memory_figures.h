/* SPDX-License-Identifier: GPL-2.0 */
/* memory_figures.h: what the kernel counts of a memory cgroup and of all below it. */
#ifndef MEMTOLL_MEMORY_FIGURES_H
#define MEMTOLL_MEMORY_FIGURES_H

#include "types.h"

enum memory_figure {
	/* Bytes now. */
	MEMORY_USAGE,
	MEMORY_ANON,
	MEMORY_FILE,
	MEMORY_SHMEM,
	/* Events since the cgroup was made. */
	MEMORY_FAULTS,
	MEMORY_MAJOR_FAULTS,
	MEMORY_REFAULTS_ANON,
	MEMORY_REFAULTS_FILE,
	MEMORY_SCANNED,
	MEMORY_STOLEN,
	MEMORY_HIGH,
	MEMORY_MAX,
	MEMORY_OOM_KILLS,
	MEMORY_FIGURES,
};

#define MEMORY_GAUGES MEMORY_FAULTS

struct memory_figures {
	__u64 cgroup;		      /* by its number, in version 2 */
	__s64 values[MEMORY_FIGURES]; /* -1: unknown */
};

#endif /* MEMTOLL_MEMORY_FIGURES_H */
