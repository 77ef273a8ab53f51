// SPDX-License-Identifier: GPL-2.0
/* call_stack.bpf.c: the stack of the allocator call that a thread is in. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "state/losses.bpf.h"
#include "state/thread.bpf.h"
#include "stacks/call_stack.bpf.h"
#include "stacks/memo.bpf.h"
#include "stacks/return_probe.bpf.h"
#include "stacks/stack.bpf.h"

/*
 * Where the allocator call returns to. Once it is open the kernel knows, because the return probe
 * has taken that place, and on the way back keeps registers there; before, the place itself; and
 * when the kernel has just forgotten, because it has been there, the program's registers. 0: not
 * found, which happens where a sample falls between the kernel's taking the address and its noting
 * it down. Reading it at every entry would cost each hit 30 ns.
 */
int call_find_caller(struct thread *thread)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 word = 0;

	if (!thread)
		return 0;
	if (thread->call.caller)
		return 1;
	if (thread->in_fn) {
		struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

		thread->call.caller = true_return(thread->call.sp);
		if (!thread->call.caller && regs->sp == thread->call.sp + 8 &&
		    !is_trampoline(task, regs->ip))
			thread->call.caller = regs->ip;
	}
	if (!thread->call.caller) {
		bpf_probe_read_user(&word, sizeof(word), (void *)thread->call.sp);
		thread->call.caller =
			is_trampoline(task, word) ? true_return(thread->call.sp) : word;
	}
	return thread->call.caller != 0;
}

/* Where the walk of the open call begins, for the memos of its thread; NULL: no room for those. */
static __always_inline struct memos *memos_of_call(const struct thread *thread)
{
	struct memos *known = memos_get(bpf_get_current_task_btf());

	if (known)
		known->key = (struct memo_key){
			.callee = thread->call.ip,
			.ip = thread->call.caller,
			.sp = thread->call.sp + 8,
			.bp = thread->call.bp,
		};
	return known;
}

/* The id of the open allocator call's stack, if a memo has it (memo_find()), or 0. */
__u64 stack_of_call_known(struct thread *thread)
{
	struct memos *known;

	if (!thread || !call_find_caller(thread))
		return 0;
	known = memos_of_call(thread);
	return known ? memo_find(known, thread, bpf_get_current_pid_tgid() >> 32) : 0;
}

/* The stack of the open allocator call: the function, its caller, the callers' chain. */
int stack_of_call(struct thread *thread)
{
	struct memo *memo = NULL;
	struct memos *known;

	if (!thread)
		return 0;
	stack_begin(&thread->stack, bpf_get_current_pid_tgid() >> 32, thread->call.ip);
	if (!call_find_caller(thread)) {
		lose(LOST_UNWIND_PROBE, 1);
		stack_ends_in_probe(&thread->stack, &thread->walk, &thread->python);
		return 0;
	}
	thread->stack.frames[1] = thread->call.caller;
	thread->stack.depth = 2;
	thread->walk = (struct unwind){
		.ip = thread->call.caller,
		.sp = thread->call.sp + 8,
		.bp = thread->call.bp,
	};
	known = memos_of_call(thread);
	if (known)
		memo = memo_new(known);
	stack_walk(&thread->stack, &thread->walk, memo, &thread->python);
	memo_keep(memo, thread->call.caller, &thread->stack);
	return 0;
}
