/* SPDX-License-Identifier: GPL-2.0 */
/* paid_prices.h: what hits cost in the targets, where that is not what the calibration found. */
#ifndef MEMTOLL_PAID_PRICES_H
#define MEMTOLL_PAID_PRICES_H

#include <linux/types.h>

#include "bpf/wire/rates.h"
#include "probes/calibrate.h"
#include "recording/recording.h"

/* As calibrated. */
struct paid_prices {
	double fault_begin_ns;
	double read_outside_ns; /* of a read, outside of its program */
	double map_ns;
	double map_program_ns;
};

struct paid_prices paid_prices_of(const struct calibration_result *prices);

/*
 * What hits cost as far as their own programs were timed in the target, and what no clock inside of
 * them sees: of a fault, what is beyond its calibrated price, since ending a run and looking up a
 * place cost more than one more page; of a mapping call, what is beyond what its calibrated one,
 * with all in the caches, took in its programs; of a sample, all that its program takes; of a read
 * and a mapping call, what they cost where some are passed over. Means between two readings, which
 * the next slice replaces.
 */
int paid_prices_write(const struct paid_prices *paid, const struct memtoll_rates *first,
		      const struct memtoll_rates *now, struct recording *recording);

/*
 * Of mapping calls between two readings, all together, in nanoseconds: what their programs took beyond
 * what a calibrated one took, program_ns, in its own.
 */
double paid_maps_more_ns(const struct memtoll_rates *first, const struct memtoll_rates *now,
			 double program_ns);

#endif /* MEMTOLL_PAID_PRICES_H */
