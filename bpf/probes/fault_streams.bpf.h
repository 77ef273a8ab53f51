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

/* Bits of a place's flags that are known without its stack. */
#define SWEEP_FLAGS (RUN_KERNEL_MODE | RUN_WRITE)

/* Global functions: which of the places it is makes no difference to the verifier after them. */
__u32 sweep_at(struct thread *thread, __u64 ip, __u64 sp, __u32 flags);
int sweep_remember(struct thread *thread, __u64 ip, __u64 sp);

/* Nothing is in order any more: stacks were drained, or the process is another program. */
static __always_inline void sweep_end(struct thread *thread)
{
	thread->sweep.next = 0;
}

/* The place of this fault, if the sweep knows it; or NULL. */
static __always_inline struct sweep_place *sweep_find(struct thread *thread,
						      const struct pt_regs *regs, __u8 flags)
{
	struct sweep_place *place;
	__u32 at;

	if (thread->fault.address != thread->sweep.next || thread->in_fn)
		return NULL;
	at = sweep_at(thread, regs->ip, regs->sp, flags);
	if (at >= SWEEP_PLACES)
		return NULL;
	place = &thread->sweep.places[at];
	/* And the interpreter is where it was when the place was noted. */
	return place->top.frame_at && !python_top_is_same(place) ? NULL : place;
}

#endif /* MEMTOLL_FAULT_STREAMS_BPF_H */
