/* SPDX-License-Identifier: GPL-2.0 */
/* What the programs have counted so far, of all CPUs together. */
#ifndef MEMTOLL_RATES_H
#define MEMTOLL_RATES_H

#include <linux/types.h>

#include "bpf/wire/rates.h"

struct memtoll_bpf;

/* All zeros where the map cannot be read. */
void rates_read(struct memtoll_bpf *bpf, struct memtoll_rates *rates);

#endif
