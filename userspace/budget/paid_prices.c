// SPDX-License-Identifier: GPL-2.0
#include "budget/paid_prices.h"

#include <glib.h>

/* So many faults, of which one in 64 is timed, and mapping calls, one in 16, tell what they take. */
#define SURE_FAULTS 4096
#define SURE_MAPS 1024
/* Where caches are colder than in the calibration, no more than so often its price is believed. */
#define COLDEST 4

struct paid_prices paid_prices_of(const struct calibration_result *prices)
{
	return (struct paid_prices){
		.fault_begin_ns = prices->fault_begin_ns,
		.fault_outside_ns = MAX(0, prices->fault.hit_ns - prices->fault_begin_ns),
		.read_outside_ns = MAX(0, prices->read.hit_ns - prices->read_program_ns),
		.map_program_ns = prices->map_program_ns,
		.map_outside_ns = MAX(0, prices->map.hit_ns - prices->map_program_ns),
	};
}

/* What a fault took that was passed over or followed in order. 0: there were too few. */
static double least_program_ns(const struct memtoll_rates *first, const struct memtoll_rates *now)
{
	double faults = now->passed_faults - first->passed_faults + now->ordered_faults -
			first->ordered_faults;

	return faults < SURE_FAULTS ? 0 : (now->least_fault_ns - first->least_fault_ns) / faults;
}

double paid_fault_outside_ns(const struct paid_prices *paid, const struct memtoll_rates *first,
			     const struct memtoll_rates *now)
{
	double calibrated_ns = MAX(1, paid->fault_begin_ns);

	return paid->fault_outside_ns *
	       CLAMP(least_program_ns(first, now) / calibrated_ns, 1, COLDEST);
}

double paid_least_fault_ns(const struct paid_prices *paid, const struct memtoll_rates *first,
			   const struct memtoll_rates *now)
{
	double program_ns = least_program_ns(first, now);

	return (program_ns > 0 ? program_ns : paid->fault_begin_ns) +
	       paid_fault_outside_ns(paid, first, now);
}

double paid_maps_ns(const struct paid_prices *paid, const struct memtoll_rates *first,
		    const struct memtoll_rates *now)
{
	double maps = now->maps - first->maps;
	double looked = maps - (now->passed_maps - first->passed_maps);
	double looked_ns = MAX(now->map_ns - first->map_ns, looked * paid->map_program_ns);

	return looked_ns + (now->passed_map_ns - first->passed_map_ns) +
	       maps * paid->map_outside_ns;
}

/*
 * Programs that are timed stand for those that are not, so that their time comes in lumps: of a fault
 * only what is outside of its program is charged by the fault.
 */
double paid_fixed_ns(const struct paid_prices *paid, const struct memtoll_rates *first,
		     const struct memtoll_rates *before, const struct memtoll_rates *now)
{
	double faults = now->faults - before->faults + now->passed_faults - before->passed_faults;
	double reads = now->reads - before->reads + now->passed_reads - before->passed_reads;
	double event_ns = now->fault_ns - before->fault_ns +
			  faults * paid_fault_outside_ns(paid, first, now) +
			  paid_maps_ns(paid, before, now) + now->sample_ns - before->sample_ns +
			  now->thread_ns - before->thread_ns;

	return BEYOND_CLOCKS * event_ns + now->read_ns - before->read_ns +
	       reads * paid->read_outside_ns + now->walk_ns - before->walk_ns;
}

int paid_prices_write(const struct paid_prices *paid, const struct memtoll_rates *first,
		      const struct memtoll_rates *now, struct recording *recording)
{
	double faults = now->faults - first->faults + now->passed_faults - first->passed_faults;
	double samples = now->samples - first->samples;
	double reads = now->reads - first->reads + now->passed_reads - first->passed_reads;
	double maps = now->maps - first->maps;
	double fault_ns = (now->fault_ns - first->fault_ns) / MAX(faults, 1) -
			  paid->fault_begin_ns + paid_fault_outside_ns(paid, first, now) -
			  paid->fault_outside_ns;
	bool many_maps = maps >= SURE_MAPS;
	double map_ns = many_maps ? paid_maps_ns(paid, first, now) / maps :
				    paid->map_program_ns + paid->map_outside_ns;
	/* error: of the price */
	const struct {
		const char *probe;
		double ns, error;
		bool seen;
	} prices[] = {
		{ "fault_more", BEYOND_CLOCKS * MAX(0, fault_ns), 0.15, faults },
		/* All of it: where most are passed over it is less than what was calibrated. */
		{ "read_paid",
		  (now->read_ns - first->read_ns) / MAX(reads, 1) + paid->read_outside_ns, 0.1,
		  reads },
		{ "map_paid", map_ns, 0.1, many_maps },
		/* From a tenth to seven tenths of the rest, by what the program leaves in the caches. */
		{ "map_more", (BEYOND_CLOCKS - 1) * map_ns, 0.75, maps },
		{ "sample", (now->sample_ns - first->sample_ns) / MAX(samples, 1), 0.1, samples },
	};
	int err = 0;
	size_t i;
	for (i = 0; i < G_N_ELEMENTS(prices) && !err; i++)
		if (prices[i].seen)
			err = recording_price(recording, prices[i].probe, prices[i].ns, 0,
					      prices[i].error * prices[i].ns);
	return err;
}
