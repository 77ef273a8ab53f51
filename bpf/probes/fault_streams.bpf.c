// SPDX-License-Identifier: GPL-2.0
/* fault_streams.bpf.c: which place a fault is of, and what is kept of one that was looked at. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/records.h"
#include "state/thread.bpf.h"
#include "memory/page_state.bpf.h"
#include "probes/fault_streams.bpf.h"

#define SWEEP_FAULTS 32
#define SWEEP_FAULTS_MOST 128

/* The place, still trusted, of these registers and flags; SWEEP_PLACES: there is none. */
__u32 sweep_at(struct thread *thread, __u64 ip, __u64 sp, __u32 flags)
{
	struct sweep_place *place;
	struct sweep *sweep;
	__u32 i;

	if (!thread)
		return SWEEP_PLACES;
	sweep = &thread->sweep;
	for (i = 0; i < SWEEP_PLACES; i++) {
		place = &sweep->places[i];
		if (place->until > sweep->faults && place->ip == ip && place->sp == sp &&
		    (place->flags & SWEEP_FLAGS) == flags)
			break;
	}
	return i;
}

/* The place of these registers, or the least recently useful one. */
static __always_inline __u32 sweep_slot(const struct sweep *sweep, __u64 ip, __u64 sp)
{
	const struct sweep_place *place, *oldest = &sweep->places[0];
	__u32 i, at = 0;

	for (i = 0; i < SWEEP_PLACES; i++) {
		place = &sweep->places[i];
		if (place->ip == ip && place->sp == sp)
			return i;
		/* Where order has ended all are 0: then the least trusted. */
		if (place->until < oldest->until ||
		    (place->until == oldest->until && place->trusted < oldest->trusted)) {
			oldest = place;
			at = i;
		}
	}
	return at;
}

/* The open fault's stack was looked at: it may be found again. */
int sweep_remember(struct thread *thread, __u64 ip, __u64 sp)
{
	struct open_fault *fault;
	struct sweep_place *place;
	struct sweep *sweep;
	__u32 i;

	if (!thread)
		return 0;
	fault = &thread->fault;
	sweep = &thread->sweep;
	if (fault->address != sweep->next)
		for (i = 0; i < SWEEP_PLACES; i++)
			sweep->places[i].until = 0;
	/* What a memset fills with may change from one to the next. */
	if (thread->in_fn || fault->flags & RUN_MEMSET)
		return 0;
	i = sweep_slot(sweep, ip, sp);
	/* The compiler knows that it is in bounds, the verifier is to. */
	barrier_var(i);
	place = &sweep->places[i % SWEEP_PLACES];
	if (place->top.frame_at && place->stack_id == fault->stack_id)
		place->trusted =
			place->trusted < SWEEP_FAULTS_MOST ? 2 * place->trusted : SWEEP_FAULTS_MOST;
	else
		place->trusted = SWEEP_FAULTS;
	place->ip = ip;
	place->sp = sp;
	place->stack_id = fault->stack_id;
	place->flags = fault->flags;
	place->top = thread->python.top;
	if (place->top.frame_at) {
		direct_word_find(&place->frame_word, fault->root, place->top.frame_at);
		direct_word_find(&place->instruction_word, fault->root, place->top.instruction_at);
	}
	place->until =
		!place->top.frame_at || place->top.frame ? sweep->faults + place->trusted : 0;
	return 0;
}
