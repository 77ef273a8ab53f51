/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fault_thinning.bpf.h: where faults cost more than the overhead budget allows, one in so many is
 * looked at, and the others are counted.
 *
 * Who is looked at is drawn on each CPU, by multiples of the root of two: evenly, in step with no
 * pattern of the program, nor with the draw of those whose programs are timed. It stands for those
 * that were passed over since the one before, so that all together are as many as there were. A
 * fault in order costs less than to pass it over, and what is inside a call of the allocator is part
 * of its record: these are looked at as ever. So are all while the ends of faults are seen, and for
 * some time after a thread had a fault that waits: those are few, take long and must not be missed.
 */
#ifndef MEMTOLL_FAULT_THINNING_BPF_H
#define MEMTOLL_FAULT_THINNING_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "state/fault_rest.bpf.h"
#include "state/losses.bpf.h"
#include "state/numbers.bpf.h"
#include "state/rates.bpf.h"
#include "state/settings.bpf.h"
#include "state/thread.bpf.h"
#include "state/windows.bpf.h"

#define ROOT_OF_TWO 0x6a09e667U /* its fraction, of 2^32 */
#define CAREFUL_FAULTS 512

/* The thread has met a fault that waits for something. */
static __always_inline void fault_be_careful(struct thread *thread)
{
	struct memtoll_rates *rates = rates_here();

	thread->careful = CAREFUL_FAULTS;
	if (rates)
		rates->waited_faults++;
}

static __always_inline bool fault_may_pass(struct thread *thread)
{
	if (thread->in_fn || in_map(thread) || ends_are_seen() || handler_suspected)
		return false;
	if (!thread->careful)
		return true;
	thread->careful--;
	return false;
}

/* Whether the fault that begins is counted and no more. */
static __always_inline bool fault_is_passed(struct thread *thread)
{
	struct memtoll_rates *rates;

	thread->exempt = fault_draw != ~0U && !fault_may_pass(thread);
	if (fault_draw == ~0U || thread->exempt)
		return false;
	/* Where they rest few are seen at all, unless the tracer has been stopped. */
	if (faults_rest == FAULTS_REST && timed_window_is_open())
		return false;
	rates = rates_here();
	if (!rates || (__u32)++rates->thinned_faults * ROOT_OF_TWO <= fault_draw)
		return false;
	rates->passed_faults++;
	rates->passed_open++;
	if (in_read(thread))
		thread->read.faults++;
	return true;
}

/*
 * The one that was drawn speaks for those before it. One that is looked at in any case does not:
 * those are of other kinds, and come together, all on one of a kind. Where faults rest nothing is
 * drawn: all that are seen speak.
 */
static __always_inline __u32 faults_passed(const struct thread *thread, __u32 tgid,
					   struct memtoll_rates *rates)
{
	__u32 passed = rates->passed_open;

	if (faults_rest == FAULTS_REST)
		return rest_spoken_for(tgid, 1);
	if (thread->exempt)
		return 0;
	rates->passed_open = 0;
	return passed;
}

/* The one that was drawn is a major one, as those are not that were passed over: the next speaks. */
static __always_inline void fault_gives_back(struct open_fault *fault)
{
	struct memtoll_rates *rates;

	if (!fault->passed)
		return;
	rates = rates_here();
	if (rates) {
		rates->passed_open += fault->passed;
		fault->passed = 0;
	}
}

/*
 * One that was passed over has ended, and was a major one: its time is lost. rested: its begin was
 * not seen, so that it was not counted.
 */
static __always_inline void fault_passed_major(struct thread *thread, bool rested)
{
	struct memtoll_rates *rates = rates_here();

	if (fault_draw == ~0U && !rested)
		return;
	fault_be_careful(thread);
	lose(LOST_FAULTS_PASSED, 1);
	if (rested)
		return;
	/* Its time is the read's: it was counted as a minor one there. */
	if (in_read(thread) && thread->read.faults)
		thread->read.faults--;
	if (rates)
		rates->passed_open = sub_sat(rates->passed_open, 1);
}

#endif /* MEMTOLL_FAULT_THINNING_BPF_H */
