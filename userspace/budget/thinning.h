/* SPDX-License-Identifier: GPL-2.0 */
/*
 * thinning.h: of how many faults one is looked at, so that looking stays within the overhead limit;
 * pure, budget_executor.c carries it out, fault_thinning.bpf.h and map_thinning.bpf.h draw.
 *
 * To look at a fault that does not follow the one before in order, and to walk the stack of a
 * mapping call, takes microseconds, and there is no probe that could be detached: so one in so many
 * is looked at. So it is with small mapping calls, of which half of the price is saved. What it costs
 * to follow a fault in order, or to pass one over, is the least there is while they are counted, and
 * no reason to look at fewer. Where that alone is about the limit, faults rest: they are counted by
 * the kernel, and seen in windows (state/fault_rest.bpf.h).
 */
#ifndef MEMTOLL_THINNING_H
#define MEMTOLL_THINNING_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire/rates.h"
#include "budget/paid_prices.h"
#include "probes/calibrate.h"

/* What is counted by the kernel alone, and seen in windows. */
struct resting {
	bool rests;
	uint64_t changed_ns;
};

struct thinning {
	double limit;
	struct paid_prices paid;
	double read_least_ns; /* a read that is passed over */
	double read_outside_ns;
	double map_spared_ns; /* of a mapping call, if it is passed over; until that is seen */
	uint64_t spared_cpu_ns;
	unsigned int one_in; /* 1: all */
	struct resting faults;
	struct resting calls; /* system calls */
	bool calls_may_rest;
	bool maps_are_seen; /* while they rest */
	double advices;	    /* of late, that would be missed all the same, of so many reads */
	double advised_reads;
	double waited_ns; /* in reads that wait, of late; estimated from windows where they rest */
	double waited_cpu_ns;
	unsigned int read_one_in; /* as one_in was when they were last all counted */
	double other_calls;	  /* what system calls that nobody looks at pay, of the CPU time */
	uint64_t since_ns;
	uint64_t since_cpu_ns;
	struct memtoll_rates since;
	struct memtoll_rates first;
	uint64_t changed_ns;
};

/*
 * limit: share of the targets' CPU time, as governor_new() has it. The first cpu_ns of theirs are
 * not held against it.
 */
void thinning_begin(struct thinning *thinning, double limit,
		    const struct calibration_result *prices, uint64_t spared_cpu_ns);

/* One in how many from now on. Readings ascend in time. */
unsigned int thinning_step(struct thinning *thinning, uint64_t now_ns, uint64_t cpu_ns,
			   const struct memtoll_rates *rates);

/* As the BPF side has it: the part of 2^32. */
uint32_t thinning_draw(unsigned int one_in);

#endif /* MEMTOLL_THINNING_H */
