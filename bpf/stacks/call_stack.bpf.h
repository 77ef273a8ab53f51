/* SPDX-License-Identifier: GPL-2.0 */
/* call_stack.bpf.h: stacks of the open allocator call. */
#ifndef MEMTOLL_CALL_STACK_BPF_H
#define MEMTOLL_CALL_STACK_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "state/losses.bpf.h"
#include "state/numbers.bpf.h"
#include "state/thread.bpf.h"
#include "stacks/stack.bpf.h"

int call_find_caller(struct thread *thread);
int stack_of_call(struct thread *thread);
__u64 stack_of_call_known(struct thread *thread);
int site_share(struct thread *thread, __u64 id);

/*
 * The id of a call site where the stack is not walked at every call: function and direct caller,
 * which must be known; site.bpf.h adds callers to it. stack_keep() stores under it the whole stack
 * of the first call, as an example.
 */
static __always_inline __u64 stack_site(__u32 tgid, const struct thread *thread)
{
	__u64 id = mix(~STACK_HASH_SEED, tgid);

	id = mix(mix(id, thread->call.ip), thread->call.caller);
	return id ? id : 1;
}

static __always_inline __u64 stack_from_call(struct thread *thread)
{
	__u64 id = stack_of_call_known(thread);

	if (id)
		return id;
	stack_of_call(thread);
	return stack_store(&thread->stack, &thread->python, &thread->walk);
}

/* Keep the stack of the open call as the example of its site. */
static __always_inline void stack_keep(struct thread *thread, __u64 id)
{
	if (bpf_map_lookup_elem(&stacks, &id))
		return;
	stack_of_call(thread);
	stack_add_python(&thread->stack, &thread->python, &thread->walk, id);
	site_share(thread, id);
	stack_put(id, &thread->stack, &thread->python);
}

/*
 * The stack that begins with what `stack` has, at the registers of the walk. Inlined: functions may
 * call one another eight deep.
 */
static __always_inline __u64 stack_on(struct thread *thread, struct memtoll_stack *stack,
				      struct unwind *walk, struct python_walk *python,
				      struct memo *memo)
{
	if (thread->in_fn) {
		/* Go on from the call that was seen: what the allocator does inside is its own. */
		stack->frames[1] = thread->call.ip;
		stack->exact[0] = 3;
		stack->depth = 2;
		if (!call_find_caller(thread)) {
			/* A sample there is of the probe itself, not of the program. */
			if (stack != &thread->sample_stack)
				lose(LOST_UNWIND_PROBE, 1);
			stack_ends_in_probe(stack, walk, python);
			goto out;
		}
		stack->frames[2] = thread->call.caller;
		stack->depth = 3;
		walk->ip = thread->call.caller;
		walk->sp = thread->call.sp + 8;
		walk->bp = thread->call.bp;
		walk->exact = 0;
		walk->leaf = 0;
	}
	stack_walk(stack, walk, memo, python);
out:
	return stack_add_python(stack, python, walk, stack->id);
}

#endif /* MEMTOLL_CALL_STACK_BPF_H */
