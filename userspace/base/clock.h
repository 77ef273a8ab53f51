/* SPDX-License-Identifier: GPL-2.0 */
/* clock.h: the time that everything is measured in, as bpf_ktime_get_ns() has it. */
#ifndef MEMTOLL_CLOCK_H
#define MEMTOLL_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

#endif /* MEMTOLL_CLOCK_H */
