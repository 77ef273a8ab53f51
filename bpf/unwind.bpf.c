// SPDX-License-Identifier: GPL-2.0
/*
 * unwind.bpf.c: user stacks become 64-bit ids.
 *
 * Frame pointers only, in this version. The caller of a probed function is read from the stack
 * pointer, which is exact at a function's entry even where nothing keeps frame pointers.
 */
#include "memtoll.bpf.h"

struct stacks_map stacks SEC(".maps");

#define STACK_HASH_SEED 0x9e3779b97f4a7c15ULL
#define STACK_HASH_PRIME 0xff51afd7ed558ccdULL

static __always_inline __u64 mix(__u64 hash, __u64 value)
{
	hash = (hash ^ value) * STACK_HASH_PRIME;
	return hash ^ (hash >> 32);
}

/* The id of a stack: a hash of its frames. 0 is never an id: it means "no stack". */
__u64 stack_hash(struct memtoll_stack *stack)
{
	__u64 id;
	int i;

	if (!stack)
		return 0;
	id = mix(STACK_HASH_SEED, stack->tgid);
	for (i = 0; i < MEMTOLL_STACK_DEPTH; i++) {
		if (i >= stack->depth)
			break;
		id = mix(id, stack->frames[i]);
	}
	return id ? id : 1;
}

/*
 * Append the callers found by following frame pointers. A frame must lie above the one before and
 * above the stack pointer (the stack grows down), or the chain is at its end or never was one.
 */
int stack_walk(struct memtoll_stack *stack, __u64 bp, __u64 sp)
{
	__u64 pair[2];
	__u32 depth;
	int i;

	if (!stack)
		return 0;
	depth = stack->depth;
	for (i = 0; i < MEMTOLL_STACK_DEPTH; i++) {
		if (bp < sp || (bp & 7) || bp >> 47)
			break;
		if (bpf_probe_read_user(pair, sizeof(pair), (void *)bp))
			break;
		if (!pair[1] || pair[1] >> 47)
			break;
		/* Keeps the compiler from making of the index a pointer no verifier can bound. */
		barrier_var(depth);
		if (depth >= MEMTOLL_STACK_DEPTH) {
			stack->flags |= STACK_TRUNCATED;
			break;
		}
		stack->frames[depth] = pair[1];
		depth++;
		sp = bp + 16;
		bp = pair[0];
	}
	stack->depth = depth;
	return 0;
}

/* The stack of the open allocator call: the function, its caller, the callers' chain. */
int stack_of_call(struct thread *thread)
{
	struct memtoll_stack *stack;

	if (!thread)
		return 0;
	stack = &thread->stack;
	stack->tgid = bpf_get_current_pid_tgid() >> 32;
	stack->how = UNWIND_FP;
	stack->flags = 0;
	stack->frames[0] = thread->call.ip;
	stack->frames[1] = thread->call.caller;
	stack->depth = thread->call.caller ? 2 : 1;
	if (!thread->call.caller)
		lose(LOST_STACK_FAILED, 1);
	return stack_walk(stack, thread->call.bp, thread->call.sp);
}

/*
 * The id of a call site where the stack is not walked at every call: function and direct caller.
 * stack_keep() stores under it the whole stack of the first call, as an example.
 */
__u64 stack_site(struct thread *thread)
{
	__u64 id = mix(~STACK_HASH_SEED, bpf_get_current_pid_tgid() >> 32);

	if (!thread)
		return 0;
	id = mix(mix(id, thread->call.ip), thread->call.caller);
	return id ? id : 1;
}

int in_memset(const struct memtoll_target *process, __u64 ip)
{
	__u32 i;

	if (!process)
		return 0;
	for (i = 0; i < MEMTOLL_MEMSET_RANGES; i++) {
		if (i >= process->memset_count)
			break;
		if (ip >= process->memset[i].start && ip < process->memset[i].end)
			return 1;
	}
	return 0;
}
