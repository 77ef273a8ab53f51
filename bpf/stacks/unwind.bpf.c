// SPDX-License-Identifier: GPL-2.0
/*
 * unwind.bpf.c: user stacks, walked by call frame information, become 64-bit ids.
 *
 * Userspace compiles .eh_frame into tables (events.h) and lists each process's code. A walk goes
 * from frame to frame: find the mapping, bisect for the rule, read the caller's registers. Where
 * there is no rule the frame pointer has to do: code made at run time keeps it.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "wire/pages.h"
#include "wire/stacks.h"
#include "wire/sums.h"
#include "wire/unwind_rows.h"
#include "state/emit.bpf.h"
#include "state/losses.bpf.h"
#include "state/numbers.bpf.h"
#include "state/processes.bpf.h"
#include "state/rates.bpf.h"
#include "state/row.bpf.h"
#include "memory/page_state.bpf.h"
#include "stacks/call_stack.bpf.h"
#include "stacks/memo.bpf.h"
#include "stacks/return_probe.bpf.h"
#include "stacks/stack.bpf.h"
#include "stacks/unwind.bpf.h"

struct stacks_map stacks SEC(".maps");

volatile __u32 stacks_untold = 0;

/*
 * Whose stacks are in the table, so that userspace finds a process's without looking through all. No
 * figure is lost with it.
 */
int stack_tell(__u32 tgid, __u64 id)
{
	struct memtoll_new_stack event = { .kind = EVENT_STACK, .tgid = tgid, .id = id };

	if (bpf_ringbuf_output(&events, &event, sizeof(event), BPF_RB_NO_WAKEUP))
		stacks_untold = 1;
	return 0;
}

struct unwind_tables_map unwind_tables SEC(".maps");

SUM_TABLE(walks, 8192, 512, struct memtoll_walk_key, struct memtoll_walk_sum);

/* A walk takes microseconds, as many as the stack has frames: too different to be calibrated. */
__hidden int walk_account(__u32 tgid, __u64 ns, __u32 count)
{
	struct memtoll_walk_key key = { .tgid = tgid };
	static const struct memtoll_walk_sum zero;
	struct memtoll_walk_sum *sum = row_get(&walks, &walks_spare, &key, &zero);
	struct memtoll_rates *rates = rates_here();

	if (rates)
		rates->walk_ns += ns;
	if (!sum) {
		lose(LOST_COSTS_FULL, count);
		return 0;
	}
	if (count)
		__sync_fetch_and_add(&sum->walks, count);
	__sync_fetch_and_add(&sum->ns, ns);
	return 0;
}

/* The id of a stack: a hash of its frames. 0 is never an id: it means "no stack". */
__noinline __u64 stack_hash(struct memtoll_stack *stack)
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
 * The largest of `entries` sorted values, a power of two of them, that is not above `wanted`: its
 * index. Without a branch, or the verifier would follow both ways at every step. stride: bytes from
 * one to the next, the value first.
 */
#define BISECT(at, entries, wanted, value_of)						\
	do {										\
		__u32 step_;								\
											\
		at = 0;									\
		for (step_ = (entries) / 2; step_; step_ /= 2) {			\
			__u64 probe_ = at + step_;					\
			__s64 above_;							\
											\
			/* The compiler knows that it is in bounds, 6.1's verifier not. */ \
			barrier_var(probe_);						\
			probe_ &= (entries) - 1;					\
			above_ = (__s64)(value_of(probe_)) - (__s64)(wanted) - 1;	\
			at += step_ & (__u32)(above_ >> 63);				\
		}									\
		barrier_var(at);							\
		at &= (entries) - 1;							\
	} while (0)

/*
 * Rules that were looked up before: some hundred places call nearly all that walks come through,
 * and where a program has had the caches meanwhile, to bisect for one is eight misses. A word is pc
 * and rule; at which place it stands, and pc, tell the table: UNWIND_TABLES many places, each for
 * one table at a given pc. So a word is whole whoever writes it, and says what it is of. A module
 * keeps its table for good (unwind_load.c), and the rows in it never change.
 */
static __u64 rules_known[UNWIND_TABLES];

static __always_inline __u64 *rule_place(__u32 table_id, __u32 pc)
{
	__u64 at = ((pc * 0x9e3779b1U) >> 20) + table_id;

	barrier_var(at);
	return &rules_known[at & (UNWIND_TABLES - 1)];
}

static __always_inline __u32 rule_bisect(__u32 table_id, __u32 pc)
{
	struct unwind_chunk *chunk;
	__u32 at, number = 0;
	void *table;

	table = bpf_map_lookup_elem(&unwind_tables, &table_id);
	if (!table)
		return 0;
	chunk = bpf_map_lookup_elem(table, &number);
	if (!chunk)
		return 0;
#define FIRST_PC(i) chunk->index[i]
	BISECT(at, UNWIND_INDEX_ENTRIES, pc, FIRST_PC);
	if (chunk->index[at] > pc)
		return 0;
	number = at + 1;
	chunk = bpf_map_lookup_elem(table, &number);
	if (!chunk)
		return 0;
#define ROW_PC(i) chunk->rows[i].pc
	BISECT(at, UNWIND_CHUNK_ROWS, pc, ROW_PC);
	return chunk->rows[at].rule;
}

/* The rule that holds at pc of a module. 0: none. */
__u32 unwind_rule(__u32 table_id, __u32 pc)
{
	volatile __u64 *place = rule_place(table_id, pc);
	__u64 word = *place;
	__u32 rule;

	if (word && word >> 32 == pc)
		return word;
	rule = rule_bisect(table_id, pc);
	if (rule)
		*place = (__u64)pc << 32 | rule;
	return rule;
}

/* Find the mapping of an address into the walk. 0: there is none. */
int unwind_mapping(struct unwind *walk, __u64 address)
{
	struct memtoll_unwind_mapping *mapping;
	struct unwind_chunk *chunk, *next;
	__u32 at, number = 0, i;
	void *table;

	if (!walk)
		return 0;
	at = walk->process_table;
	table = bpf_map_lookup_elem(&unwind_tables, &at);
	if (!table)
		return 0;
	chunk = bpf_map_lookup_elem(table, &number);
	if (!chunk)
		return 0;
	for (i = 1; i < UNWIND_MAPPING_CHUNKS; i++) {
		number = i;
		next = bpf_map_lookup_elem(table, &number);
		if (!next || next->mappings[0].start > address)
			break;
		chunk = next;
	}
/* Of unused entries all bits are set: they must not come out negative. */
#define MAPPING_START(i) (chunk->mappings[i].start & (~0ULL >> 1))
	BISECT(at, UNWIND_CHUNK_MAPPINGS, address, MAPPING_START);
	mapping = &chunk->mappings[at];
	if (address < mapping->start || address >= mapping->end)
		return 0;
	walk->start = mapping->start;
	walk->end = mapping->end;
	walk->bias = mapping->bias;
	walk->table = mapping->table;
	return 1;
}

/*
 * The kernel's page among the program's code (kernel/events/uprobes.c). Its first slot is where a
 * function returns to that a return probe waits for; in the others probed instructions are
 * executed.
 */
#define PROBE_SLOT_BYTES 128		/* UPROBE_XOL_SLOT_BYTES */
#define BREAKPOINT 0xcc

/*
 * Bytes the code for returns (arch/x86/kernel/uprobes.c, uretprobe_trampoline_entry) has on the
 * stack at an instruction of it: push %rax; push %rcx; push %r11; mov $..., %rax; syscall; pop
 * %r11; pop %rcx; ret, to what the kernel put in the place of rax. Before 6.11 it is a breakpoint.
 */
#define RETURN_AFTER_SYSCALL 13		/* offset of what follows the system call */

static __always_inline __u64 pushed_for_return(__u64 code, __u64 offset)
{
	__u8 first = BREAKPOINT;

	bpf_probe_read_user(&first, sizeof(first), (void *)code);
	if (first == BREAKPOINT || !offset)
		return 0;
	if (offset == 1 || offset > RETURN_AFTER_SYSCALL + 2)
		return 8;
	return offset < 4 || offset > RETURN_AFTER_SYSCALL ? 16 : 24;
}

/* The return address whose place on the stack a return probe has taken, or 0. */
__u64 true_return(__u64 slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct return_instance *instance;
	int i;

	if (!bpf_core_field_exists(task->utask))
		return 0;
	instance = BPF_CORE_READ(task, utask, return_instances);
	for (i = 0; i < 64 && instance; i++) {
		if (BPF_CORE_READ(instance, stack) == slot)
			return BPF_CORE_READ(instance, orig_ret_vaddr);
		instance = BPF_CORE_READ(instance, next);
	}
	return 0;
}

/*
 * Where ip is in the kernel's page: the program's own place instead, which may be a return address.
 * 1: done.
 */
int unwind_see_through(struct unwind *walk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 page, offset, slot, place, pushed = 0;

	if (!walk || !bpf_core_field_exists(task->utask))
		return 0;
	page = probe_page(task);
	offset = walk->ip - page;
	if (!page || offset >= MEMTOLL_PAGE_SIZE)
		return 0;
	if (offset >= PROBE_SLOT_BYTES) {
		slot = BPF_CORE_READ(task, utask, xol_vaddr);
		if (walk->ip - slot >= PROBE_SLOT_BYTES)
			return 0;
		walk->ip += BPF_CORE_READ(task, utask, vaddr) - slot;
		walk->irregular = 1;
		return 1;
	}
	if (walk->exact)
		pushed = pushed_for_return(page, offset);
	slot = walk->sp + pushed - 8;
	place = true_return(slot);
	/* No longer waited for: the probe has run, and the program goes on at what it left here. */
	if (!place && (!pushed || offset < RETURN_AFTER_SYSCALL ||
		       bpf_probe_read_user(&place, sizeof(place), (void *)slot) ||
		       place - page < MEMTOLL_PAGE_SIZE))
		return 0;
	walk->ip = place;
	walk->sp = slot + 8;
	walk->exact = 0;
	walk->irregular = 1;
	return 1;
}

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
		if (walk->bp < walk->sp || (walk->bp & 7) || walk->bp >> 47 ||
		    bpf_probe_read_user(pair, sizeof(pair), (void *)walk->bp)) {
			go_by_bp(walk);
			walk->stopped_by_bp = 1;
			return stop(walk, why);
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
#define UC_RIP 168

static __always_inline int step_over_signal(struct unwind *walk)
{
	__u64 saved[2], bp;	/* rsp and rip lie side by side */

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
static __always_inline __u64 frame_address(struct unwind *walk, __u32 rule)
{
	__s64 offset = UNWIND_CFA_OFFSET(rule);
	__u64 cfa;

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

	if (!cfa)
		return stop(walk, UNWIND_STOP_MEMORY);
	/* rbp mostly lies just below the return address: one read for both. */
	if (bpf_probe_read_user(pair, sizeof(pair), (void *)(cfa - 16)))
		return stop(walk, UNWIND_STOP_MEMORY);
	walk->ip = pair[1];
	walk->used_at = cfa - 8;
	walk->used_word = walk->ip;
	if (UNWIND_CFA(rule) == CFA_RBP || UNWIND_SAVED_RBP(rule) == RBP_AT_RBP)
		go_by_bp(walk);
	switch (UNWIND_SAVED_RBP(rule)) {
	case RBP_AT_CFA:
		walk->bp_from = cfa + UNWIND_RBP_OFFSET(rule);
		if (UNWIND_RBP_OFFSET(rule) == -16)
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
	__u64 address;
	__u32 rule;

	/* A return address may be the first byte after its function: look up the call. */
	address = walk->exact ? walk->ip : walk->ip - 1;
	if ((address < walk->start || address >= walk->end) && !unwind_mapping(walk, address)) {
		if (walk->process_table && unwind_see_through(walk))
			return 2;
		return step_by_pointer(walk, UNWIND_STOP_NO_MAPPING);
	}
	if (!walk->table)
		return step_by_pointer(walk, UNWIND_STOP_NO_ROW);
	rule = unwind_rule(walk->table, address - walk->bias);
	switch (UNWIND_CFA(rule)) {
	case CFA_STOP:
		return step_by_pointer(walk, UNWIND_STOP_RULE);
	case CFA_END:
		walk->flags |= STACK_COMPLETE;
		return 0;
	case CFA_SIGNAL:
		return step_over_signal(walk);
	default:
		return step_by_rule(walk, rule);
	}
}

/*
 * Loaders and runtimes start without call frame information; a frame at which the stack holds no
 * more than what the kernel put on it for exec is a process's first all the same.
 */
#define START_SLACK 64		/* bytes a start may have aligned the stack pointer by */

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

struct memos_map memos SEC(".maps");

/*
 * What this step went by: the return address and, if it is not by the stack pointer alone, rbp. A
 * saved rbp that no step goes by is the program's own value, different every time. Without a branch
 * but for what the verifier knows.
 */
static __always_inline void memo_note(struct memo *memo, __u32 step, const struct unwind *walk)
{
	__u64 address = walk->sp - 8 - memo->key.sp, used = walk->used_at - memo->key.sp;

	if (step >= MEMO_STEPS)
		return;
	memo->address_at[step] = address;
	memo->used_at[step] = used;
	memo->hash = mix(mix(memo->hash, walk->ip), walk->used_word);
	memo->bytes = address + 8;
	memo->beyond |= (address | used | (address - used)) >> MEMO_BYTES_LOG |
			((address | used) & 7);
}

/* Whether the stack still has the words that a memo was made of. Counts as a walk where it has. */
int memo_holds(struct memos *known, __u32 at)
{
	__u64 hash = 0, began_ns = bpf_ktime_get_ns(), bytes;
	struct memo *memo;
	__u32 i;

	if (!known)
		return 0;
	memo = &known->memos[at % MEMOS];
	bytes = memo->bytes;
	barrier_var(bytes);
	if (bytes > MEMO_BYTES || bpf_probe_read_user(known->copy, bytes, (void *)memo->key.sp))
		return 0;
	for (i = 0; i < MEMO_STEPS; i++) {
		if (i >= memo->steps)
			break;
		hash = mix(mix(hash, known->copy[memo->address_at[i] / 8 % MEMO_COPY_WORDS]),
			   known->copy[memo->used_at[i] / 8 % MEMO_COPY_WORDS]);
	}
	if (hash != memo->hash)
		return 0;
	walk_account(bpf_get_current_pid_tgid() >> 32, bpf_ktime_get_ns() - began_ns, 1);
	return 1;
}

/* Put the walk's frame behind the `depth` that the stack has: how many it has then. */
static __always_inline __u32 stack_append(struct memtoll_stack *stack, const struct unwind *walk,
					  __u32 depth)
{
	__u32 word;

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
	stack->flags |= walk->flags;
	stack->stop = walk->stop;
	if (walk->stop && stack->how == UNWIND_CFI)
		lose(LOST_UNWIND_MAPPING + walk->stop - UNWIND_STOP_NO_MAPPING, 1);
	if (!memo)
		return 0;
	if (walk->stopped_by_bp)
		memo_note(memo, steps++, walk);
	if (steps <= MEMO_STEPS && !walk->irregular && !memo->beyond &&
	    (stack->flags & (STACK_COMPLETE | STACK_TRUNCATED)) == STACK_COMPLETE)
		memo->steps = steps;
	memo->needs_bp = walk->needs_bp;
	return 0;
}

/* A walk under way. */
struct walking {
	struct memtoll_stack *stack;
	struct unwind *walk;
	struct memo *memo;	/* NULL: none is made */
	__u32 depth;
	__u32 steps;
};

/* One caller more; 1: that was the last. */
static int walk_on(__u32 i, struct walking *walking)
{
	__u32 step = unwind_step(walking->walk);

	walking->steps = i;
	if (!step)
		return 1;
	if (walking->memo)
		memo_note(walking->memo, i, walking->walk);
	walking->depth = stack_append(walking->stack, walking->walk, walking->depth - (step >> 1));
	walking->steps = i + 1;
	return walking->stack->flags & STACK_TRUNCATED ? 1 : 0;
}

/*
 * Append the callers of the last frame of a stack, whose registers the walk holds. Frames of which
 * the first is exact already are in it. memo: NULL, or with sp set; its steps are 0 where the walk
 * depended on more than it can hold.
 */
int stack_walk(struct memtoll_stack *stack, struct unwind *walk, struct memo *memo)
{
	struct walking walking = { .stack = stack, .walk = walk, .memo = memo };
	struct memtoll_target *process;
	__u64 began_ns = bpf_ktime_get_ns();
	__u32 tgid, i;

	if (!stack || !walk)
		return 0;
	tgid = stack->tgid;
	process = process_get(tgid);
	walk->process_table = process ? process->unwind_table : 0;
	stack->how = walk->process_table ? UNWIND_CFI : UNWIND_FP;
	walking.depth = stack->depth;
	if (memo) {
		memo->hash = 0;
		memo->steps = 0;
		memo->beyond = 0;
	}
	/* 5.17 and later: the verifier goes through a function once, through a loop each round. */
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop)) {
		bpf_loop(MEMTOLL_STACK_DEPTH, walk_on, &walking, 0);
	} else {
		for (i = 0; i < MEMTOLL_STACK_DEPTH; i++)
			if (walk_on(i, &walking))
				break;
	}
	stack->depth = walking.depth;
	stack_end(stack, walk, memo, walking.steps);
	walk_account(tgid, bpf_ktime_get_ns() - began_ns, 1);
	return 0;
}

/*
 * Where the allocator call returns to. Once it is open the kernel tells, because the return probe
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
	if (!thread->call.caller)
		lose(LOST_UNWIND_PROBE, 1);
	return thread->call.caller != 0;
}

/*
 * The stack that begins in the thread's place for such, at the registers of its walk: stack_at(). Its
 * id.
 */
__u64 stack_of_registers(struct thread *thread, struct memo *memo, __u32 sampling)
{
	struct memtoll_stack *stack;
	struct python_walk *python;
	struct unwind *walk;

	if (!thread)
		return 0;
	stack = sampling ? &thread->sample_stack : &thread->stack;
	python = sampling ? &thread->sample_python : &thread->python;
	walk = sampling ? &thread->sample_walk : &thread->walk;
	if (thread->in_fn) {
		/* Go on from the call that was seen: what the allocator does inside is its own. */
		stack->frames[1] = thread->call.ip;
		stack->exact[0] = 3;
		stack->depth = 2;
		if (!call_find_caller(thread)) {
			stack_ends_in_probe(stack);
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
	stack_walk(stack, walk, memo);
out:
	return stack_add_python(stack, python, stack_hash(stack));
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
		stack_ends_in_probe(&thread->stack);
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
	stack_walk(&thread->stack, &thread->walk, memo);
	memo_keep(memo, thread->call.caller, &thread->stack);
	return 0;
}
