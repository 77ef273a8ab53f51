/* SPDX-License-Identifier: GPL-2.0 */
/*
 * huge_use.h: how much of a process's huge pages holds nothing but zeros: what the kernel clears and
 * keeps resident whole, where a few bytes of it are used. What the program has written as zeros
 * counts, too.
 */
#ifndef MEMTOLL_HUGE_USE_H
#define MEMTOLL_HUGE_USE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hold/memory_view.h"

#define HUGE_BYTES (2ULL << 20)

struct huge_use {
	bool known;	 /* this kernel tells where huge pages are, and some could be read */
	uint64_t pages;	 /* huge ones of anonymous memory */
	uint64_t looked; /* that were read, evenly over the address space */
	uint64_t zero;	 /* bytes of all of them that are in pages of zeros; an estimate, where */
	uint64_t low;	 /* not all were looked at, with its 95 % bounds */
	uint64_t high;
};

/*
 * Where they are is asked by PAGEMAP_SCAN (Linux 6.7, Documentation/admin-guide/mm/pagemap.rst) of
 * /proc/PID/pagemap. 0, or -errno: -ENOTTY where the kernel has it not, -ETIMEDOUT, -ESRCH.
 */
int huge_use_read(const struct process_view *process, struct huge_use *use);

/*
 * The sum over all pages of what some of them have, each from 0 to HUGE_BYTES: their mean times the
 * number, with bounds by how they spread (Cochran, Sampling Techniques, 2.5: without replacement).
 */
void huge_use_estimate(struct huge_use *use, const uint64_t *zero, uint64_t count);

#endif /* MEMTOLL_HUGE_USE_H */
