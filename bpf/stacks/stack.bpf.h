/* SPDX-License-Identifier: GPL-2.0 */
/* stack.bpf.h: stacks, walked and kept under their ids. */
#ifndef MEMTOLL_STACK_BPF_H
#define MEMTOLL_STACK_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "stacks/python.bpf.h"
#include "state/losses.bpf.h"
#include "state/processes.bpf.h"
#include "state/settings.bpf.h"
#include "state/thread.bpf.h"
#include "wire/stacks.h"

struct stacks_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	/* Memory is taken as they come. A thousand processes a second leave 40,000 in one. */
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct memtoll_stack);
};
extern struct stacks_map stacks SEC(".maps");

/* Set when stack_announce() found the ring buffer full. */
extern volatile __u32 stacks_unannounced;

struct memo;

/*
 * All but those of accounts global: with functions of other files the verifier looks at each once,
 * which makes loading ten times as fast. Their pointers may be NULL as far as it knows.
 */
int stack_announce(__u32 tgid, __u64 id);
int stack_walk(struct memtoll_stack *stack, struct unwind *walk, struct memo *memo,
	       struct python_walk *python);
int stack_end(struct memtoll_stack *stack, const struct unwind *walk, struct memo *memo,
	      __u32 steps);
__u64 stack_of_registers(struct thread *thread, __u32 sampling);
int walk_account(__u32 tgid, __u64 ns, __u32 count) __hidden;
int thread_account(__u32 tgid, __u64 ns) __hidden;

/*
 * Read the interpreter's frames, where there is one. unwound: how the stack was walked; NULL: it is
 * known, and so has no frame that was passed by its pointer. The id with them mixed in.
 */
static __always_inline __u64 stack_add_python(struct memtoll_stack *stack, struct python_walk *walk,
					      const struct unwind *unwound, __u64 id)
{
	stack->python_depth = 0;
	walk->top.frame_at = 0;
	walk->generated_bp = unwound ? unwound->generated_bp : 0;
	walk->generated_ip = unwound ? unwound->generated_ip : 0;
	if (!unwound)
		walk->python.depth = 0;
	return python_seen ? python_add(stack, walk, id) : id;
}

/* Not a global function: before 6.2 a map takes its values from maps and the stack only. */
static __always_inline void stack_put(__u64 id, struct memtoll_stack *stack,
				      struct python_walk *walk)
{
	if (bpf_map_lookup_elem(&stacks, &id))
		return;
	if (stack->python_depth)
		walk->woken = python_emit(id, &walk->python);
	if (bpf_map_update_elem(&stacks, &id, stack, BPF_ANY))
		lose(LOST_STACKS_FULL, 1);
	else
		stack_announce(stack->tgid, id);
}

static __always_inline __u64 stack_store(struct memtoll_stack *stack, struct python_walk *walk,
					 const struct unwind *unwound)
{
	__u64 id = stack_add_python(stack, walk, unwound, stack->id);

	stack_put(id, stack, walk);
	return id;
}

/*
 * Whether the word on top of the stack is a return address: it follows a call instruction. Then
 * nothing was pushed since, as in libc's wrappers of system calls.
 */
static __always_inline bool is_return_address(__u64 sp)
{
#if defined(__TARGET_ARCH_x86)
	__u64 address;
	__u8 code[7];

	if (bpf_probe_read_user(&address, sizeof(address), (void *)sp) ||
	    bpf_probe_read_user(code, sizeof(code), (void *)(address - sizeof(code))))
		return false;
	/* call rel32; call *disp32(%rip); call *disp8(reg); call *reg */
	return code[2] == 0xe8 || (code[1] == 0xff && code[2] == 0x15) ||
	       (code[4] == 0xff && (code[5] & 0xf8) == 0x50) ||
	       (code[5] == 0xff && (code[6] & 0xf8) == 0xd0);
#else
	return false;
#endif
}

/* A stack of one frame, an instruction. */
static __always_inline void stack_begin(struct memtoll_stack *stack, __u32 tgid, __u64 ip)
{
	stack->tgid = tgid;
	stack->how = UNWIND_FP;
	stack->flags = 0;
	stack->exact[0] = 1;
	stack->exact[1] = 0;
	stack->stop = UNWIND_STOP_NONE;
	stack->python_depth = 0;
	/* Until it is walked: of an instruction that may be in any code. */
	stack->id = mix(mix(STACK_HASH_SEED, tgid), ip) | 1;
	stack->frames[0] = ip;
	stack->depth = 1;
}

/* A stack that ends because its return address could not be found. */
static __always_inline void stack_ends_in_probe(struct memtoll_stack *stack, struct unwind *walk,
						struct python_walk *python)
{
	walk->generated_bp = 0;
	python->python.depth = 0;
	stack->how = UNWIND_CFI;
	stack->stop = UNWIND_STOP_PROBE;
}

/*
 * The stack of code that is not at a function's entry. `stack` is one of the thread's two scratch
 * places. leaf: without call frame information the caller is where the stack pointer points. shown:
 * what stands for ip in it.
 */
static __always_inline __u64 stack_shown(struct thread *thread, struct memtoll_stack *stack,
					 __u32 tgid, __u64 shown, __u64 ip, __u64 sp, __u64 bp,
					 bool leaf)
{
	bool sampling = stack == &thread->sample_stack;
	struct unwind *walk = sampling ? &thread->sample_walk : &thread->walk;
	__u64 id;

	if (process_is_nameless(tgid))
		return 0;
	*walk = (struct unwind){ .ip = ip, .sp = sp, .bp = bp, .exact = 1, .leaf = leaf };
	stack_begin(stack, tgid, shown);
	id = stack_of_registers(thread, sampling);
	stack_put(id, stack, sampling ? &thread->sample_python : &thread->python);
	return id;
}

static __always_inline __u64 stack_at(struct thread *thread, struct memtoll_stack *stack,
				      __u32 tgid, __u64 ip, __u64 sp, __u64 bp, bool leaf)
{
	return stack_shown(thread, stack, tgid, ip, ip, sp, bp, leaf);
}

#endif /* MEMTOLL_STACK_BPF_H */
