// SPDX-License-Identifier: GPL-2.0
#include "budget/paid_prices.h"

#include <glib.h>

#include "budget/governor.h"
#include "budget/thinning.h"

struct paid_prices paid_prices_of(const struct calibration_result *prices)
{
	return (struct paid_prices){
		.fault_begin_ns = prices->fault_begin_ns,
		.read_outside_ns = MAX(0, prices->read.hit_ns - prices->read_program_ns),
		.map_ns = prices->map.hit_ns,
		.map_program_ns = prices->map_program_ns,
	};
}

double paid_maps_more_ns(const struct memtoll_rates *first, const struct memtoll_rates *now,
			 double program_ns)
{
	double looked = now->maps - first->maps;

	looked -= now->passed_maps - first->passed_maps;
	return MAX(0, now->map_ns - first->map_ns - looked * program_ns);
}

int paid_prices_write(const struct paid_prices *paid, const struct memtoll_rates *first,
		      const struct memtoll_rates *now, struct recording *recording)
{
	double faults = now->faults - first->faults + now->passed_faults - first->passed_faults;
	double samples = now->samples - first->samples;
	double reads = now->reads - first->reads + now->passed_reads - first->passed_reads;
	double maps = now->maps - first->maps, passed_maps = now->passed_maps - first->passed_maps;
	double fault_ns = (now->fault_ns - first->fault_ns) / MAX(faults, 1) - paid->fault_begin_ns;
	double map_ns = paid->map_ns * (1 - (1 - MAP_LEAST) * MIN(1, passed_maps / MAX(maps, 1)));
	double map_more_ns = paid_maps_more_ns(first, now, paid->map_program_ns);
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
		{ "map_paid", map_ns, 0.1, passed_maps },
		{ "map_more", (BEYOND_CLOCKS - 1) * map_ns + map_more_ns / MAX(maps, 1), 0.3,
		  maps },
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
