/* SPDX-License-Identifier: GPL-2.0 */
/*
 * calls.h: calls of the allocator in the test's thread, as its probes see them: entered, and, where
 * the program wants it, returned from. Until then the return address is the kernel's (struct
 * return_instance), as with every return probe.
 */
#ifndef TESTS_BPF_CALLS_H
#define TESTS_BPF_CALLS_H

#include "tests/bpf/native.h"

#define PROBE_PAGE 0x7fffffffe000ULL /* where return probes send functions */
#define FUNCTION(fn) (0x7f5500001100ULL + (fn)*0x140)
#define STACK_TOP 0x7fffffffd000ULL
#define CALLER 0x401836ULL

struct call {
	__u32 fn;
	__u64 sp; /* at the function's entry, where the return address is */
	__u64 args[3];
	__u64 caller; /* 0: CALLER */
	__u64 cookie; /* more than the function: COOKIE_* */
	int wanted;   /* the return, by the program */
	struct return_instance instance;
};

/* By which link: one program for both sides (uprobe.session), or one for each. */
static int by_session;

static struct uprobe_task uprobe_task;
static struct xol_area xol_area;

static void calls_begin(void)
{
	host_begin();
	memset(&uprobe_task, 0, sizeof(uprobe_task));
	xol_area.vaddr = PROBE_PAGE;
	host.mm.uprobes_state.xol_area = &xol_area;
	host.task.utask = &uprobe_task;
	kernel_object(&uprobe_task, sizeof(uprobe_task));
	kernel_object(&xol_area, sizeof(xol_area));
	memset((void *)entry_cookies, 0, sizeof(entry_cookies));
}

/* Into the function. What the kernel does with the return address comes after the program. */
static void enter(struct call *call)
{
	struct pt_regs *regs = &host.regs;
	__u64 cookie = call->fn | call->cookie, caller = call->caller ? call->caller : CALLER;

	*regs = (struct pt_regs){
		.ip = FUNCTION(call->fn),
		.sp = call->sp - (cookie >> COOKIE_SP_SHIFT & 0xff),
		.di = call->args[0],
		.si = call->args[1],
		.dx = call->args[2],
	};
	/* A tail call finds what is there already. */
	if (!uprobe_task.return_instances || uprobe_task.return_instances->stack != call->sp)
		kernel_poke_word(USER, call->sp, caller);
	kernel.cookie = cookie;
	kernel.function = regs->ip;
	entry_cookies[regs->ip % MEMTOLL_PAGE_SIZE] = cookie;
	call->wanted = by_session ? !alloc_session(regs) : (alloc_entry(regs), 1);
	/* A return probe where the return address is not on top of the stack would end the program. */
	if (by_session && cookie & COOKIE_ENTRY_ONLY)
		assert_false(call->wanted);
	if (!call->wanted || cookie & COOKIE_ENTRY_ONLY)
		return;
	call->instance.stack = call->sp;
	call->instance.func = FUNCTION(call->fn);
	call->instance.orig_ret_vaddr = caller;
	call->instance.next = uprobe_task.return_instances;
	uprobe_task.return_instances = &call->instance;
	kernel_object(&call->instance, sizeof(call->instance));
	kernel_poke_word(USER, call->sp, PROBE_PAGE);
}

static void leave(struct call *call, __u64 result)
{
	struct pt_regs *regs = &host.regs;

	*regs = (struct pt_regs){
		.ip = call->caller ? call->caller : CALLER,
		.sp = call->sp + 8,
		.ax = result,
	};
	if (!call->wanted || call->cookie & COOKIE_ENTRY_ONLY)
		return;
	uprobe_task.return_instances = call->instance.next;
	kernel.function = FUNCTION(call->fn);
	if (by_session)
		alloc_session(regs);
	else
		alloc_return(regs);
}

/* The whole call, which takes so long. */
static void call_once(struct call call, __u64 ns, __u64 result)
{
	enter(&call);
	kernel.now_ns += ns;
	leave(&call, result);
}

/* The function's sums, over all places where it was called from. */
static struct memtoll_call sums_of(__u32 fn)
{
	struct memtoll_call all = {};
	__u32 at;

	for (at = 0; at < CALL_PLACES; at++) {
		const struct memtoll_call_place *place = kernel_map_lookup(&call_places, &at);
		const __u64 *from = (const __u64 *)&place->call.sum;
		size_t i;

		if (place->state != PLACE_TAKEN || place->key.fn != fn)
			continue;
		for (i = 0; i < sizeof(all.sum) / sizeof(*from); i++)
			((__u64 *)&all.sum)[i] += from[i];
		for (i = 0; i < LATENCY_BUCKETS; i++)
			all.latency[i] += place->call.latency[i];
	}
	return all;
}

/* Calls that were timed: each is in one of the buckets. */
static __u64 timed_calls(__u32 fn)
{
	const struct memtoll_call all = sums_of(fn);
	__u64 count = 0;
	size_t i;

	for (i = 0; i < LATENCY_BUCKETS; i++)
		count += all.latency[i];
	return count;
}

static inline __u64 entries_counted(__u32 fn)
{
	__u32 zero = 0;

	return ((struct memtoll_rates *)kernel_map_lookup(&rates, &zero))->calls[fn];
}

#endif /* TESTS_BPF_CALLS_H */
