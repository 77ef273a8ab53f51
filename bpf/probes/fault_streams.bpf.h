/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fault_streams.bpf.h: pages touched in order from a few places in turn.
 *
 * A run of faults ends when the next page is touched by another instruction. Allocators that cut
 * their memory in pieces do that all the time: of four pages that CPython takes in order one is
 * touched where a pool is made and three where its objects are, from the same two places each time.
 * As within a run, the origin of a fault is known when the same instruction, with the same stack
 * pointer, touches the next page in order: then no stack is walked. With CPython, whose callers are
 * not on the stack, the innermost frame must be the same, too. Callers farther out may have
 * changed, so a place is looked at again after SWEEP_FAULTS faults. If an interpreter's is the same
 * then, it is trusted for twice as many, up to SWEEP_FAULTS_MOST: so no more faults can be
 * attributed to a wrong caller than passed between two looks that agreed.
 */
#ifndef MEMTOLL_FAULT_STREAMS_BPF_H
#define MEMTOLL_FAULT_STREAMS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/records.h"
#include "state/thread.bpf.h"
#include "memory/page_state.bpf.h"

#define SWEEP_FAULTS 32
#define SWEEP_FAULTS_MOST 128

/* Bits of a place's flags that are known without its stack. */
#define SWEEP_FLAGS (RUN_KERNEL_MODE | RUN_WRITE)

/* Nothing is in order any more: stacks were drained, or the process is another program. */
static __always_inline void sweep_end(struct thread *thread)
{
	thread->sweep.next = 0;
}

/* The place of this fault, if the sweep knows it; or NULL. */
static __always_inline struct sweep_place *sweep_find(struct thread *thread,
						      const struct pt_regs *regs, __u8 flags)
{
	struct sweep *sweep = &thread->sweep;
	struct sweep_place *place;
	__u32 i;

	if (thread->fault.address != sweep->next || thread->in_fn)
		return NULL;
	for (i = 0; i < SWEEP_PLACES; i++) {
		place = &sweep->places[i];
		if (place->until > sweep->faults && place->ip == regs->ip &&
		    place->sp == regs->sp && (place->flags & SWEEP_FLAGS) == flags)
			break;
	}
	/* And the interpreter is where it was when the place was noted. */
	if (i == SWEEP_PLACES || (place->top.frame_at && !python_top_is_same(place)))
		return NULL;
	return place;
}

/* The place of these registers, or the least recently useful one. */
static __always_inline struct sweep_place *sweep_slot(struct sweep *sweep,
						      const struct pt_regs *regs)
{
	struct sweep_place *place, *oldest = &sweep->places[0];
	__u32 i;

	for (i = 0; i < SWEEP_PLACES; i++) {
		place = &sweep->places[i];
		if (place->ip == regs->ip && place->sp == regs->sp)
			return place;
		/* Where order has ended all are 0: then the least trusted. */
		if (place->until < oldest->until ||
		    (place->until == oldest->until && place->trusted < oldest->trusted))
			oldest = place;
	}
	return oldest;
}

/* The open fault's stack was looked at: it may be found again. */
static __always_inline void sweep_remember(struct thread *thread, const struct pt_regs *regs)
{
	struct open_fault *fault = &thread->fault;
	struct sweep *sweep = &thread->sweep;
	struct sweep_place *place;
	__u32 i;

	if (fault->address != sweep->next)
		for (i = 0; i < SWEEP_PLACES; i++)
			sweep->places[i].until = 0;
	/* What a memset fills with may change from one to the next. */
	if (thread->in_fn || fault->flags & RUN_MEMSET)
		return;
	place = sweep_slot(sweep, regs);
	if (place->top.frame_at && place->stack_id == fault->stack_id)
		place->trusted =
			place->trusted < SWEEP_FAULTS_MOST ? 2 * place->trusted : SWEEP_FAULTS_MOST;
	else
		place->trusted = SWEEP_FAULTS;
	place->ip = regs->ip;
	place->sp = regs->sp;
	place->stack_id = fault->stack_id;
	place->flags = fault->flags;
	place->top = thread->python.top;
	if (place->top.frame_at) {
		direct_word_find(&place->frame_word, fault->root, place->top.frame_at);
		direct_word_find(&place->instruction_word, fault->root, place->top.instruction_at);
	}
	place->until =
		!place->top.frame_at || place->top.frame ? sweep->faults + place->trusted : 0;
}

#endif /* MEMTOLL_FAULT_STREAMS_BPF_H */
