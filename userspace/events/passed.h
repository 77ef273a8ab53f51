/* SPDX-License-Identifier: GPL-2.0 */
/* passed.h: what a run stands for besides its own faults, where only some are looked at. */
#ifndef MEMTOLL_PASSED_H
#define MEMTOLL_PASSED_H

#include <stdint.h>

#include <linux/types.h>

#include "bpf/wire/records.h"

/* So many of the run's pages, or faults, are how many in all. */
static inline uint64_t with_passed(const struct memtoll_run *run, uint64_t count)
{
	if (!run->passed || !run->faults)
		return count;
	return (unsigned __int128)count * (run->faults + run->passed) / run->faults;
}

#endif /* MEMTOLL_PASSED_H */
