// SPDX-License-Identifier: GPL-2.0
/*
 * unwind.bpf.c: from a frame to its caller's. Find the mapping, look up the rule, read the caller's
 * registers. Where there is no rule the frame pointer has to do: code made at run time keeps it.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/pages.h"
#include "wire/stacks.h"
#include "wire/unwind_rows.h"
#include "memory/page_state.bpf.h"
#include "stacks/return_probe.bpf.h"
#include "stacks/unwind.bpf.h"

/* The walk ends here. */
static __always_inline int stop(struct unwind *walk, __u32 why)
{
	walk->stop = why;
	return 0;
}

/* A step goes by rbp: what a later walk has to find again is the word that it was read from. */
static __always_inline void go_by_bp(struct unwind *walk)
{
	if (!walk->bp_from) {
		walk->needs_bp = 1;
		return;
	}
	walk->used_at = walk->bp_from;
	walk->used_word = walk->bp;
}

#define SWITCH_BYTES (1ULL << 20) /* from a frame to its caller's, at most */

/*
 * Whether bp is of another stack, below this one: code of the Go runtime runs on the stack of its
 * thread, and rbp is still that of the goroutine's frame that called it (systemstack in
 * runtime/asm_amd64.s of Go 1.21 and later). What rbp leads to has to look like a frame, of the same
 * module, as in code without frame pointers it is anything. Once in a walk: they are two.
 */
static __always_inline bool is_stack_below(struct unwind *walk, __u64 saved_bp, __u64 return_ip)
{
	if (walk->switched || saved_bp - walk->bp - 1 >= SWITCH_BYTES ||
	    return_ip - walk->start >= walk->end - walk->start)
		return false;
	walk->switched = 1;
	return true;
}

/*
 * One frame by its frame pointer, or, where the code is known to have moved nothing yet, by the
 * stack pointer. The stack grows down: a frame lies above the one before.
 */
static __always_inline int step_by_pointer(struct unwind *walk, __u32 why)
{
	__u64 pair[2];

	if (walk->leaf) {
		if (bpf_probe_read_user(pair, 8, (void *)walk->sp))
			return stop(walk, UNWIND_STOP_MEMORY);
		walk->ip = pair[0];
		walk->sp += 8;
	} else {
		if ((walk->bp & 7) || walk->bp >> 47 ||
		    (walk->bp < walk->sp && why == UNWIND_STOP_NO_MAPPING) ||
		    bpf_probe_read_user(pair, sizeof(pair), (void *)walk->bp) ||
		    (walk->bp < walk->sp && !is_stack_below(walk, pair[0], pair[1]))) {
			go_by_bp(walk);
			walk->stopped_by_bp = 1;
			return stop(walk, why);
		}
		if (!walk->generated_bp) {
			walk->generated_bp = walk->bp;
			walk->generated_ip = walk->ip;
		}
		walk->ip = pair[1];
		walk->sp = walk->bp + 16;
		walk->bp = pair[0];
	}
	walk->irregular = 1;
	if (walk->ip >> 47 || walk->ip < MEMTOLL_PAGE_SIZE)
		return stop(walk, why);
	walk->leaf = 0;
	walk->exact = 0;
	walk->flags |= STACK_SOME_FP;
	return 1;
}

/* Offsets in what the kernel pushes for a signal: struct ucontext of x86-64, from its start. */
#define UC_RBP 120
#define UC_RSP 160

static __always_inline int step_over_signal(struct unwind *walk)
{
	__u64 saved[2], bp; /* rsp and rip lie side by side */

	if (bpf_probe_read_user(&bp, sizeof(bp), (void *)(walk->sp + UC_RBP)) ||
	    bpf_probe_read_user(saved, sizeof(saved), (void *)(walk->sp + UC_RSP)))
		return stop(walk, UNWIND_STOP_MEMORY);
	walk->sp = saved[0];
	walk->ip = saved[1];
	walk->bp = bp;
	walk->exact = 1;
	walk->irregular = 1;
	return 1;
}

/* The frame's address by its rule; 0: unreadable. */
__noinline __u64 frame_address(struct unwind *walk, __u32 rule)
{
	__s64 offset = UNWIND_CFA_OFFSET(rule);
	__u64 cfa;

	if (!walk)
		return 0;
	switch (UNWIND_CFA(rule)) {
	case CFA_RSP:
		return walk->sp + offset;
	case CFA_RBP:
		return walk->bp + offset;
	case CFA_PLT:
		return walk->sp + 8 + ((__s64)(walk->ip & 15) >= offset / 8 ? 8 : 0);
	case CFA_RBP_DEREF:
	case CFA_RSP_DEREF:
		cfa = UNWIND_CFA(rule) == CFA_RBP_DEREF ? walk->bp : walk->sp;
		walk->irregular = 1;
		if (bpf_probe_read_user(&cfa, sizeof(cfa),
					(void *)(cfa + UNWIND_DEREF_OFFSET(rule))))
			return 0;
		return cfa + UNWIND_ADDEND(rule);
	default:
		return 0;
	}
}

static __always_inline int step_by_rule(struct unwind *walk, __u32 rule)
{
	__u64 cfa = frame_address(walk, rule), pair[2];
	bool both;

	if (!cfa)
		return stop(walk, UNWIND_STOP_MEMORY);
	/*
	 * rbp mostly lies just below the return address: one read for both. At a function's entry
	 * the return address may be the last word there is: the push that comes next takes the page
	 * below.
	 */
	both = !bpf_probe_read_user(pair, sizeof(pair), (void *)(cfa - 16));
	if (!both && bpf_probe_read_user(&pair[1], sizeof(pair[1]), (void *)(cfa - 8)))
		return stop(walk, UNWIND_STOP_MEMORY);
	walk->ip = pair[1];
	walk->used_at = cfa - 8;
	walk->used_word = walk->ip;
	if (UNWIND_CFA(rule) == CFA_RBP || UNWIND_SAVED_RBP(rule) == RBP_AT_RBP)
		go_by_bp(walk);
	switch (UNWIND_SAVED_RBP(rule)) {
	case RBP_AT_CFA:
		walk->bp_from = cfa + UNWIND_RBP_OFFSET(rule);
		if (both && UNWIND_RBP_OFFSET(rule) == -16)
			walk->bp = pair[0];
		else if (bpf_probe_read_user(&walk->bp, sizeof(walk->bp), (void *)walk->bp_from))
			return stop(walk, UNWIND_STOP_MEMORY);
		break;
	case RBP_AT_RBP:
		walk->bp_from = walk->bp + UNWIND_RBP_OFFSET(rule);
		if (bpf_probe_read_user(&walk->bp, sizeof(walk->bp), (void *)walk->bp_from))
			return stop(walk, UNWIND_STOP_MEMORY);
		break;
	default:
		break;
	}
	walk->sp = cfa;
	walk->exact = 0;
	walk->leaf = 0;
	return 1;
}

static __always_inline int step(struct unwind *walk)
{
	__u32 rule, why = UNWIND_STOP_NO_MAPPING;
	__u64 address;

	/* A return address may be the first byte after its function: look up the call. */
	address = walk->exact ? walk->ip : walk->ip - 1;
	walk->place = 0;
	if ((address < walk->start || address >= walk->end) && !unwind_mapping(walk, address)) {
		if (walk->process_table && unwind_see_through(walk))
			return 2;
	} else if (!walk->table) {
		why = UNWIND_STOP_NO_ROW;
	} else {
		walk->place = unwind_place(walk, address);
		rule = unwind_rule(walk->table, address - walk->bias);
		switch (UNWIND_CFA(rule)) {
		case CFA_STOP:
			why = UNWIND_STOP_RULE;
			break;
		case CFA_END:
			walk->flags |= STACK_COMPLETE;
			return 0;
		case CFA_SIGNAL:
			return step_over_signal(walk);
		default:
			return step_by_rule(walk, rule);
		}
	}
	/* Of the three reasons here, together: in line it is a hundred instructions. */
	return step_by_pointer(walk, why);
}

/*
 * Loaders and runtimes start without call frame information; a frame at which the stack holds no
 * more than what the kernel put on it for exec is a process's first all the same.
 */
#define START_SLACK 64 /* bytes a start may have aligned the stack pointer by */

__noinline int unwind_stopped(struct unwind *walk)
{
	__u64 start = current_stack();

	if (!walk)
		return 0;
	if (walk->sp <= start && walk->sp + START_SLACK >= start) {
		walk->flags |= STACK_COMPLETE;
		walk->stop = UNWIND_STOP_NONE;
	}
	return 0;
}

/*
 * To the caller's frame. 1: there; 2: the frame was the kernel's and has become the program's; 0:
 * this was the last, or walk->stop says why no further.
 */
int unwind_step(struct unwind *walk)
{
	int stepped;

	if (!walk)
		return 0;
	stepped = step(walk);
	if (walk->stop)
		unwind_stopped(walk);
	return stepped;
}
