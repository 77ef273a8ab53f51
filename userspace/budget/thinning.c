// SPDX-License-Identifier: GPL-2.0
#include "budget/thinning.h"

#include <glib.h>

#include "budget/governor.h"

#define MS 1000000ULL
/* Judged so often, and not before the targets have run for so long. */
#define JUDGE_NS (100 * MS)
#define JUDGE_CPU_NS (20 * MS)
/*
 * What looking takes is known from one event in 64. Of fewer events than these a single one that was
 * slow is taken for all; a second with no more has nothing to be thinned.
 */
#define JUDGE_EVENTS 1024
#define JUDGE_NS_MOST (1000 * MS)
/* Fewer may be looked at any time, more only after so long. */
#define STAY_NS (1000 * MS)
#define MOST 64
/* What looking may take of the limit: the rest is for what cannot be thinned. */
#define ALLOWED 0.5
/* Twice as many are looked at if that leaves it below what is allowed. */
#define AGAIN 0.4
/* The part of a read's price that remains where it is passed over: its ways in and out. */
#define READ_LEAST 0.3

void thinning_begin(struct thinning *thinning, double limit,
		    const struct calibration_result *prices, uint64_t spared_cpu_ns)
{
	*thinning = (struct thinning){
		.limit = limit,
		.least_ns = prices->fault.hit_ns,
		.outside_ns = MAX(0, prices->fault.hit_ns - prices->fault_begin_ns),
		.read_least_ns = READ_LEAST * prices->read.hit_ns,
		.read_outside_ns = MAX(0, prices->read.hit_ns - prices->read_program_ns),
		.map_spared_ns = (1 - MAP_LEAST) * prices->map.hit_ns,
		.spared_cpu_ns = spared_cpu_ns,
		.one_in = 1,
	};
}

/* Faults, reads and small mapping calls, looked at or passed over. */
static uint64_t events(const struct memtoll_rates *rates)
{
	return rates->faults + rates->passed_faults + rates->reads + rates->passed_reads +
	       rates->drawn_maps + rates->passed_maps;
}

/* What walks took, all of which are timed, as a part of the CPU time. */
static double walk_load(const struct thinning *thinning, uint64_t cpu_ns,
			const struct memtoll_rates *rates)
{
	return 1.0 * (rates->walk_ns - thinning->since.walk_ns) / (cpu_ns - thinning->since_cpu_ns);
}

/* What looking at faults, reads and small mapping calls took, likewise. */
static double load(const struct thinning *thinning, uint64_t cpu_ns,
		   const struct memtoll_rates *rates)
{
	const struct memtoll_rates *before = &thinning->since;
	double passed = rates->passed_faults - before->passed_faults;
	double least = rates->ordered_faults - before->ordered_faults + passed;
	double faults = rates->faults - before->faults + passed;
	double passed_reads = rates->passed_reads - before->passed_reads;
	double reads = rates->reads - before->reads + passed_reads;
	double fault_ns = rates->fault_ns - before->fault_ns + faults * thinning->outside_ns -
			  least * thinning->least_ns;
	double read_ns = rates->read_ns - before->read_ns + reads * thinning->read_outside_ns -
			 passed_reads * thinning->read_least_ns;
	double drawn = rates->drawn_maps - before->drawn_maps;
	double looked = rates->maps - before->maps - (rates->passed_maps - before->passed_maps);
	double timed_ns = (rates->map_ns - before->map_ns) * drawn / MAX(looked, 1);
	double map_ns = MAX(drawn * thinning->map_spared_ns, timed_ns);
	double ns = BEYOND_CLOCKS * (MAX(0, fault_ns) + map_ns) + MAX(0, read_ns);

	return ns / (cpu_ns - thinning->since_cpu_ns);
}

unsigned int thinning_step(struct thinning *thinning, uint64_t now_ns, uint64_t cpu_ns,
			   const struct memtoll_rates *rates)
{
	double allowed = ALLOWED * thinning->limit, part;
	bool few = events(rates) - events(&thinning->since) < JUDGE_EVENTS;

	if (thinning->since_ns && (now_ns - thinning->since_ns < JUDGE_NS ||
				   cpu_ns - thinning->since_cpu_ns < JUDGE_CPU_NS))
		return thinning->one_in;
	if (thinning->since_ns && cpu_ns >= thinning->spared_cpu_ns) {
		part = walk_load(thinning, cpu_ns, rates);
		if (few && part <= allowed && now_ns - thinning->since_ns < JUDGE_NS_MOST)
			return thinning->one_in;
		part += few ? 0 : load(thinning, cpu_ns, rates);
		if (part > allowed && thinning->one_in < MOST) {
			thinning->one_in = MIN(MOST, thinning->one_in * MAX(2, part / allowed));
			thinning->changed_ns = now_ns;
		} else if (thinning->one_in > 1 && part < AGAIN * allowed &&
			   now_ns - thinning->changed_ns >= STAY_NS) {
			thinning->one_in /= 2;
			thinning->changed_ns = now_ns;
		}
	}
	thinning->since_ns = now_ns;
	thinning->since_cpu_ns = cpu_ns;
	thinning->since = *rates;
	return thinning->one_in;
}

uint32_t thinning_draw(unsigned int one_in)
{
	return UINT32_MAX / one_in;
}
