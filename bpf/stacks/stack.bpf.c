// SPDX-License-Identifier: GPL-2.0
/*
 * stack.bpf.c: user stacks, walked frame by frame, become 64-bit ids. A memo may keep what the walk
 * went by.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "wire/stacks.h"
#include "wire/sums.h"
#include "state/emit.bpf.h"
#include "state/loop.bpf.h"
#include "state/losses.bpf.h"
#include "state/numbers.bpf.h"
#include "state/processes.bpf.h"
#include "state/rates.bpf.h"
#include "state/row.bpf.h"
#include "stacks/call_stack.bpf.h"
#include "stacks/java.bpf.h"
#include "stacks/memo.bpf.h"
#include "stacks/stack.bpf.h"
#include "stacks/unwind.bpf.h"

struct stacks_map stacks SEC(".maps");

volatile __u32 stacks_unannounced = 0;

/*
 * Whose stacks are in the table, so that userspace finds a process's without looking through all.
 * No figure is lost with it.
 */
int stack_announce(__u32 tgid, __u64 id)
{
	struct memtoll_new_stack event = { .kind = EVENT_STACK, .tgid = tgid, .id = id };

	if (bpf_ringbuf_output(&events, &event, sizeof(event), BPF_RB_NO_WAKEUP))
		stacks_unannounced = 1;
	return 0;
}

PROCESS_SUM_TABLE(walks, 8704, struct memtoll_walk_key, struct memtoll_walk_sum);

static __always_inline void walks_add(__u32 tgid, __u64 ns, __u32 count)
{
	struct memtoll_walk_key key = { .tgid = tgid };
	static const struct memtoll_walk_sum zero;
	struct memtoll_walk_sum *sum = process_row_get(&walks, &key, &zero);

	if (!sum) {
		lose(LOST_COSTS_FULL, count);
		return;
	}
	if (count)
		__sync_fetch_and_add(&sum->walks, count);
	__sync_fetch_and_add(&sum->ns, ns);
}

/* A walk takes microseconds, as many as the stack has frames: too different to be calibrated. */
__hidden int walk_account(__u32 tgid, __u64 ns, __u32 count)
{
	struct memtoll_rates *rates = rates_here();

	if (rates)
		rates->walk_ns += ns;
	walks_add(tgid, ns, count);
	return 0;
}

/* Paid for with the walks; no stack is spared by looking at fewer faults where it is much. */
__hidden int thread_account(__u32 tgid, __u64 ns)
{
	struct memtoll_rates *rates = rates_here();

	if (rates)
		rates->thread_ns += ns;
	walks_add(tgid, ns, 0);
	return 0;
}

/*
 * One more frame in the id of a stack. Code without a table may be anything, and another's at the
 * same address something else.
 */
__noinline int stack_mix(struct memtoll_stack *stack, __u64 place, __u64 address)
{
	if (!stack)
		return 0;
	stack->id = place ? mix(stack->id, place) : mix(mix(stack->id, stack->tgid), address);
	return 0;
}

/* The frames above the walk's first one, in the allocator: two at most. */
static __always_inline void stack_mix_first(struct memtoll_stack *stack, struct unwind *walk)
{
	__u64 address;
	__u32 i;

	stack->id = STACK_HASH_SEED;
	for (i = 0; i < 2; i++) {
		if (i + 1 >= stack->depth)
			break;
		address = stack->frames[i];
		stack_mix(stack,
			  unwind_mapping(walk, address) && walk->table ?
				  unwind_place(walk, address) :
				  0,
			  address);
	}
}

/* Put the walk's frame behind the `depth` that the stack has: how many it has then. */
__noinline __u32 stack_append(struct memtoll_stack *stack, const struct unwind *walk, __u32 depth)
{
	__u32 word;

	if (!stack || !walk)
		return depth;
	if (depth >= MEMTOLL_STACK_DEPTH) {
		stack->flags |= STACK_TRUNCATED;
		return depth;
	}
	/* Keeps the compiler from making of the index a pointer no verifier can bound. */
	barrier_var(depth);
	stack->frames[depth] = walk->ip;
	word = depth >> 6;
	stack->exact[word] &= ~(1ULL << (depth & 63));
	stack->exact[word] |= (__u64)(walk->exact & 1) << (depth & 63);
	return depth + 1;
}

/* What is known of the stack when its walk has ended, after so many steps. */
__noinline int stack_end(struct memtoll_stack *stack, const struct unwind *walk, struct memo *memo,
			 __u32 steps)
{
	if (!stack || !walk)
		return 0;
	walk_account(stack->tgid, bpf_ktime_get_ns() - walk->began_ns, 1);
	stack->id += !stack->id; /* 0 means "no stack" */
	stack->flags |= walk->flags;
	stack->stop = walk->stop;
	if (walk->stop && stack->how == UNWIND_CFI)
		lose(LOST_UNWIND_MAPPING + walk->stop - UNWIND_STOP_NO_MAPPING, 1);
	if (!memo)
		return 0;
	if (walk->stopped_by_bp)
		memo_add_step(memo, steps++, walk);
	if (steps <= MEMO_STEPS && !walk->irregular && !memo->beyond &&
	    (stack->flags & (STACK_COMPLETE | STACK_TRUNCATED)) == STACK_COMPLETE)
		memo->steps = steps;
	memo->needs_bp = walk->needs_bp;
	return 0;
}

/* By what rules to walk, what its frames are told from, and when it began. */
__noinline int walk_begin(struct memtoll_stack *stack, struct unwind *walk,
			  struct python_walk *python, struct java_code *java)
{
	struct memtoll_target *process;

	if (!stack || !walk || !python || !java)
		return 0;
	walk->began_ns = bpf_ktime_get_ns();
	walk->generated_bp = 0;
	process = process_get(stack->tgid);
	walk->process_table = process ? process->unwind_table : 0;
	stack->how = walk->process_table ? UNWIND_CFI : UNWIND_FP;
	java_begin(python, process, java);
	stack_mix_first(stack, walk);
	return 0;
}

/* A walk under way. */
struct walking {
	struct memtoll_stack *stack;
	struct unwind *walk;
	struct memo *memo; /* NULL: none is made */
	struct python_walk *python;
	struct java_code java;
	__u32 depth;
	__u32 steps;
};

/* One caller more; 1: that was the last. */
static int walk_on(__u32 i, void *context)
{
	struct walking *walking = context;
	__u64 address = walking->walk->ip;
	__u32 step;

	if (address - walking->java.start < walking->java.bytes)
		java_note(walking->python, walking->walk);
	step = unwind_step(walking->walk);

	walking->steps = i;
	/*
	 * 2: of the frame it was there is another instead, which is looked at next. Beyond a
	 * program's first frame comes what exec has put on the stack, which is no code.
	 */
	if (step != 2 && (step || walking->walk->place || !(walking->walk->flags & STACK_COMPLETE)))
		stack_mix(walking->stack, walking->walk->place, address);
	if (!step)
		return 1;
	if (walking->memo)
		memo_add_step(walking->memo, i, walking->walk);
	walking->depth = stack_append(walking->stack, walking->walk, walking->depth - (step >> 1));
	walking->steps = i + 1;
	return walking->stack->flags & STACK_TRUNCATED ? 1 : 0;
}

/*
 * Append the callers of the last frame of a stack, whose registers the walk holds. Frames of which
 * the first is exact already are in it. memo: NULL, or with sp set; its steps are 0 where the walk
 * depended on more than it can hold. python: where frames of Java are noted that are passed.
 */
int stack_walk(struct memtoll_stack *stack, struct unwind *walk, struct memo *memo,
	       struct python_walk *python)
{
	struct walking walking = { .stack = stack, .walk = walk, .memo = memo, .python = python };

	if (!stack || !walk || !python)
		return 0;
	walk_begin(stack, walk, python, &walking.java);
	walking.depth = stack->depth;
	if (memo) {
		memo->hash = 0;
		memo->steps = 0;
		memo->beyond = 0;
	}
	repeat(MEMTOLL_STACK_DEPTH, walk_on, &walking);
	stack->depth = walking.depth;
	return stack_end(stack, walk, memo, walking.steps);
}

/*
 * The stack that begins in the thread's place for such, at the registers of its walk: stack_at().
 * Its id.
 */
__u64 stack_of_registers(struct thread *thread, __u32 sampling)
{
	if (!thread)
		return 0;
	if (sampling)
		return stack_on(thread, &thread->sample_stack, &thread->sample_walk,
				&thread->sample_python, NULL);
	return stack_on(thread, &thread->stack, &thread->walk, &thread->python, NULL);
}
