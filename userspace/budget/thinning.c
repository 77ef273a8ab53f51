// SPDX-License-Identifier: GPL-2.0
#include "budget/thinning.h"

#include <glib.h>

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
/* That of a mapping call's, until some were: map_thinning.bpf.h. */
#define MAP_LEAST 0.5

/*
 * Faults, or system calls, rest where all that is never detached is over the limit, and counting
 * them, or reads, is at least this part of it; they are counted again where all would be below that
 * one.
 */
#define REST_LEAST 0.1
#define REST_BELOW 0.6
/*
 * System calls rest at this part of the limit already, since little is missed by it, and the limit is
 * one for all programs: a server that does nothing but receive and send pays several times what a
 * database beside it does.
 */
#define CALLS_LIMIT 0.5
/*
 * Not where one in so many waits for something, or is in a call of the allocator: those are to be
 * seen each.
 */
#define REST_WAITED 1024
#define REST_INSIDE 8
/* So much of what there was is left at the next look; fewer than so many are chance. */
#define NOTED_KEPT 0.98
#define ADVICES_SURE 4
/* Reads that wait are seen each where that is so much of the time: windows see some of less. */
#define WAITS_MATTER 0.1
#define WAITS_DRAWN 32
/* After one that had to wait they are all seen for so long. */
#define REST_AGAIN_NS (5000 * MS)

void thinning_begin(struct thinning *thinning, double limit,
		    const struct calibration_result *prices, uint64_t spared_cpu_ns)
{
	*thinning = (struct thinning){
		.limit = limit,
		.paid = paid_prices_of(prices),
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
	return rates->faults + rates->passed_faults + rates->rested_faults + rates->reads +
	       rates->passed_reads + rates->rested_reads + rates->drawn_maps + rates->passed_maps;
}

/* What walks took, all of which are timed, as a part of the CPU time. */
static double walk_load(const struct thinning *thinning, uint64_t cpu_ns,
			const struct memtoll_rates *rates)
{
	return 1.0 * (rates->walk_ns - thinning->since.walk_ns) / (cpu_ns - thinning->since_cpu_ns);
}

/* Small mapping calls that were looked at took so much more than if they had been passed over. */
static double map_spared(const struct thinning *thinning, const struct memtoll_rates *rates)
{
	const struct memtoll_rates *before = &thinning->since;
	double drawn = rates->drawn_maps - before->drawn_maps;
	double passed = rates->passed_maps - before->passed_maps;
	double looked = rates->maps - before->maps - passed;
	double looked_ns = (rates->map_ns - before->map_ns) / MAX(looked, 1);
	double passed_ns = passed >= JUDGE_EVENTS ?
				   (rates->passed_map_ns - before->passed_map_ns) / passed :
				   0;

	return drawn * MAX(thinning->map_spared_ns, looked_ns - passed_ns);
}

/* What looking at faults, reads and small mapping calls took, as a part of the CPU time. */
static double load(const struct thinning *thinning, uint64_t cpu_ns,
		   const struct memtoll_rates *rates)
{
	const struct memtoll_rates *before = &thinning->since;
	double passed = rates->passed_faults - before->passed_faults;
	double least = rates->ordered_faults - before->ordered_faults + passed;
	double faults = rates->faults - before->faults + passed;
	double passed_reads = rates->passed_reads - before->passed_reads;
	double reads = rates->reads - before->reads + passed_reads;
	double outside_ns = paid_fault_outside_ns(&thinning->paid, &thinning->first, rates);
	double least_ns = paid_least_fault_ns(&thinning->paid, &thinning->first, rates);
	double fault_ns =
		rates->fault_ns - before->fault_ns + faults * outside_ns - least * least_ns;
	double read_ns = rates->read_ns - before->read_ns + reads * thinning->read_outside_ns -
			 passed_reads * thinning->read_least_ns;
	double ns =
		BEYOND_CLOCKS * (MAX(0, fault_ns) + map_spared(thinning, rates)) + MAX(0, read_ns);

	return ns / (cpu_ns - thinning->since_cpu_ns);
}

/* What it takes to count all faults, or would, as a part of the CPU time. */
static double counting_load(const struct thinning *thinning, uint64_t cpu_ns,
			    const struct memtoll_rates *rates)
{
	const struct memtoll_rates *before = &thinning->since;
	double faults = rates->faults - before->faults + rates->passed_faults -
			before->passed_faults + rates->rested_faults - before->rested_faults;

	return BEYOND_CLOCKS * faults *
	       paid_least_fault_ns(&thinning->paid, &thinning->first, rates) /
	       (cpu_ns - thinning->since_cpu_ns);
}

/* Too many of the faults are of kinds of which each is to be seen. */
static bool must_see(const struct thinning *thinning, const struct memtoll_rates *rates)
{
	const struct memtoll_rates *before = &thinning->since;
	uint64_t seen = rates->faults - before->faults;
	uint64_t all = seen + rates->passed_faults - before->passed_faults + rates->rested_faults -
		       before->rested_faults;

	return (rates->waited_faults - before->waited_faults) * REST_WAITED > all ||
	       (rates->inside_faults - before->inside_faults) * REST_INSIDE > seen;
}

/* What it takes to count all reads, or would, as a part of the CPU time. */
static double reads_load(const struct thinning *thinning, uint64_t cpu_ns,
			 const struct memtoll_rates *rates)
{
	const struct memtoll_rates *before = &thinning->since;
	double reads = rates->reads - before->reads + rates->passed_reads - before->passed_reads +
		       rates->rested_reads - before->rested_reads + rates->unwatched_reads -
		       before->unwatched_reads;

	return reads * thinning->read_least_ns / (cpu_ns - thinning->since_cpu_ns);
}

/*
 * What would be missed. In windows there is little of it: what is judged is that of some seconds.
 * Those that were looked at stand for the others.
 */
static void note_missed(struct thinning *thinning, uint64_t cpu_ns,
			const struct memtoll_rates *rates)
{
	const struct memtoll_rates *before = &thinning->since;
	double seen = rates->reads - before->reads + rates->passed_reads - before->passed_reads;
	double rested = rates->rested_reads - before->rested_reads;
	double stands_for = seen > 0 ? 1 + rested / seen : 1;

	if (!thinning->calls.rests)
		thinning->read_one_in = stands_for = thinning->one_in;
	thinning->advices = NOTED_KEPT * thinning->advices + rates->advices - before->advices;
	thinning->advised_reads = NOTED_KEPT * thinning->advised_reads + seen;
	thinning->waited_ns = NOTED_KEPT * thinning->waited_ns +
			      (rates->waited_read_ns - before->waited_read_ns) * stands_for;
	thinning->waited_cpu_ns =
		NOTED_KEPT * thinning->waited_cpu_ns + cpu_ns - thinning->since_cpu_ns;
}

static bool misses_advices(const struct thinning *thinning)
{
	return thinning->advices >= ADVICES_SURE &&
	       thinning->advices * REST_WAITED > thinning->advised_reads;
}

/* Where but one in so many is looked at windows see no fewer. */
static bool misses_waits(const struct thinning *thinning)
{
	return thinning->read_one_in < WAITS_DRAWN &&
	       thinning->waited_ns > WAITS_MATTER * (thinning->waited_cpu_ns + thinning->waited_ns);
}

/* Mappings change, none of which is to be missed, and would be; or reads wait for a device. */
static bool must_see_calls(const struct thinning *thinning, const struct memtoll_rates *rates)
{
	const struct memtoll_rates *before = &thinning->since;
	uint64_t all = rates->reads - before->reads + rates->passed_reads - before->passed_reads +
		       rates->rested_reads - before->rested_reads;
	uint64_t unwatched = rates->unwatched_maps - before->unwatched_maps;
	uint64_t maps = rates->maps - before->maps + unwatched;

	return (thinning->maps_are_seen ? unwatched : maps) * REST_WAITED > all ||
	       misses_advices(thinning) || misses_waits(thinning);
}

/*
 * all: what would be paid, counting with it. few: too few events to begin a rest for; it may end.
 */
static void rest_step(struct resting *resting, uint64_t now_ns, double limit, double all,
		      double counting, bool must_see, bool few)
{
	bool rests = resting->rests;

	if (must_see)
		rests = false;
	else if (all > limit && counting > REST_LEAST * limit)
		rests |= !few &&
			 (!resting->changed_ns || now_ns - resting->changed_ns >= REST_AGAIN_NS);
	else if (all < REST_BELOW * limit && now_ns - resting->changed_ns >= STAY_NS)
		rests = false;
	if (rests != resting->rests)
		resting->changed_ns = now_ns;
	resting->rests = rests;
}

static void rest(struct thinning *thinning, uint64_t now_ns, uint64_t cpu_ns,
		 const struct memtoll_rates *rates, bool few)
{
	double faults = counting_load(thinning, cpu_ns, rates);
	double reads = reads_load(thinning, cpu_ns, rates);
	double all = paid_fixed_ns(&thinning->paid, &thinning->first, &thinning->since, rates) /
		     (cpu_ns - thinning->since_cpu_ns);

	all += (thinning->faults.rests ? faults : 0) + (thinning->calls.rests ? reads : 0);
	rest_step(&thinning->faults, now_ns, thinning->limit, all, faults,
		  must_see(thinning, rates), few);
	reads += thinning->other_calls;
	all += thinning->other_calls;
	rest_step(&thinning->calls, now_ns, CALLS_LIMIT * thinning->limit, all, reads,
		  !thinning->calls_may_rest || must_see_calls(thinning, rates), few);
}

unsigned int thinning_step(struct thinning *thinning, uint64_t now_ns, uint64_t cpu_ns,
			   const struct memtoll_rates *rates)
{
	double allowed = ALLOWED * thinning->limit, part;
	bool few = events(rates) - events(&thinning->since) < JUDGE_EVENTS;

	if (thinning->since_ns && (now_ns - thinning->since_ns < JUDGE_NS ||
				   cpu_ns - thinning->since_cpu_ns < JUDGE_CPU_NS))
		return thinning->one_in;
	if (!thinning->since_ns)
		thinning->first = *rates;
	if (thinning->since_ns && cpu_ns >= thinning->spared_cpu_ns) {
		part = walk_load(thinning, cpu_ns, rates);
		if (few && part <= allowed && now_ns - thinning->since_ns < JUDGE_NS_MOST)
			return thinning->one_in;
		note_missed(thinning, cpu_ns, rates);
		rest(thinning, now_ns, cpu_ns, rates, few);
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
