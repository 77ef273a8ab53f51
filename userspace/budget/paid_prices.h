/* SPDX-License-Identifier: GPL-2.0 */
/* paid_prices.h: what hits cost in the targets, where that is not what the calibration found. */
#ifndef MEMTOLL_PAID_PRICES_H
#define MEMTOLL_PAID_PRICES_H

#include <linux/types.h>

#include "bpf/wire/rates.h"
#include "probes/calibrate.h"
#include "recording/recording.h"

/*
 * What faults, mapping calls and samples cost beyond what their programs' clocks see: ways in and
 * out, interrupts, colder caches. Of a Python program that took 1.95 points (the same program with
 * them on and off alternately for 0.15 s, each kind for itself) the account had 1.4; of one that
 * maps, touches and unmaps, 7.8 us a round of which 6.1 were in it without this.
 */
#define BEYOND_CLOCKS 1.4

/* As calibrated. */
struct paid_prices {
	double fault_begin_ns;
	double fault_outside_ns;
	double read_outside_ns; /* of a read, outside of its program */
	double map_program_ns;
	double map_outside_ns;
};

struct paid_prices paid_prices_of(const struct calibration_result *prices);

/*
 * What hits cost as far as their own programs were timed in the target, and what no clock inside of
 * them sees: of a fault, what is beyond its calibrated price, since ending a run and looking up a
 * place cost more than one more page; of a sample, all that its program takes; of a read and a mapping
 * call, all that they cost, those that were passed over among them, and of the latter what no clock
 * sees besides. Means between two readings, which the next slice replaces.
 */
int paid_prices_write(const struct paid_prices *paid, const struct memtoll_rates *first,
		      const struct memtoll_rates *now, struct recording *recording);

/*
 * What a fault costs outside of its program, in nanoseconds, in these targets: the ways in and out are
 * as much dearer than in the calibration as the least that its program does, since both find the same
 * caches. first: an earlier reading, the earlier the surer.
 */
double paid_fault_outside_ns(const struct paid_prices *paid, const struct memtoll_rates *first,
			     const struct memtoll_rates *now);
/* What one costs that is passed over, or follows in order. */
double paid_least_fault_ns(const struct paid_prices *paid, const struct memtoll_rates *first,
			   const struct memtoll_rates *now);

/*
 * All that probes cost between two readings that are never detached, in nanoseconds, system calls
 * apart that are slower because some are watched.
 */
double paid_fixed_ns(const struct paid_prices *paid, const struct memtoll_rates *first,
		     const struct memtoll_rates *before, const struct memtoll_rates *now);

/*
 * Of mapping calls between two readings, all together, in nanoseconds: what their programs took, of
 * those that were looked at no less than a calibrated one did, which had all in the caches, and the
 * ways in and out.
 */
double paid_maps_ns(const struct paid_prices *paid, const struct memtoll_rates *first,
		    const struct memtoll_rates *now);

#endif /* MEMTOLL_PAID_PRICES_H */
