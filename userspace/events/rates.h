/* SPDX-License-Identifier: GPL-2.0 */
/* What the programs have counted so far, of all CPUs together. */
#ifndef MEMTOLL_RATES_H
#define MEMTOLL_RATES_H

#include <linux/types.h>

#include "bpf/wire/rates.h"

struct memtoll_bpf;

/* All zeros where the map cannot be read. */
void rates_read(struct memtoll_bpf *bpf, struct memtoll_rates *rates);

/*
 * What they were, about, at a part of the way (0 to 1) from one reading to another, when windows
 * ended: what goes on steadily is divided; the calls counted were all before, the idle hits after.
 */
void rates_between(const struct memtoll_rates *first, const struct memtoll_rates *last, double part,
		   struct memtoll_rates *at);

#endif
