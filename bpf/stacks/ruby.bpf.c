// SPDX-License-Identifier: GPL-2.0
/*
 * ruby.bpf.c: the frames of a Ruby interpreter (vm_core.h of its sources).
 *
 * Each thread has its execution context in a variable of its own, also while it does without the
 * VM's lock, as in read(2). Its control frames lie side by side, the innermost first.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "wire/losses.h"
#include "state/losses.bpf.h"
#include "stacks/interpreter.bpf.h"
#include "stacks/python.bpf.h"

/* What a frame's environment says of it: VM_FRAME_FLAG_FINISH, VM_FRAME_MAGIC_DUMMY. */
#define FRAME_FINISH (1ULL << 5) /* the eval loop was called for it */
#define FRAME_KIND(flags) ((flags)&0x7fff0001)
#define FRAME_OUTERMOST 0x79990001 /* of the thread, with the program's code, which it never runs */

/* glibc's struct pthread has it (sysdeps/ELF/nptl/tls.h): the blocks of all modules. */
#if defined(__TARGET_ARCH_x86)
#define THREAD_BLOCKS 8
#else
#define THREAD_BLOCKS 0
#endif
#define BLOCK_BYTES 16 /* dtv_t */

/* Where the thread has the pointer to its context; 0: it has none, or not yet. */
static __always_inline __u64 context_place(const struct memtoll_python_offsets *at)
{
	__u64 blocks, block;

	if (!at->block_module)
		return thread_self() + at->runtime;
	blocks = pointer_at(thread_self() + THREAD_BLOCKS);
	if (!blocks)
		return 0;
	block = pointer_at(blocks + (__u64)at->block_module * BLOCK_BYTES);
	return block && block != ~0ULL ? block + at->runtime : 0;
}

int ruby_top(struct python_walk *walk, const struct memtoll_target *process)
{
	const struct memtoll_python_offsets *at;
	__u64 place, context;

	if (!walk || !process)
		return 0;
	at = &process->python;
	place = context_place(at);
	if (!place)
		return 0;
	walk->top.frame_at = place;
	walk->top.instruction_at = place;
	walk->top.instruction = 0;
	context = pointer_at(place);
	if (!context || !interpreter_read(walk, context, at->state_bytes))
		return 0;
	walk->frames_end = word(walk, at->state_stack) + 8 * word(walk, at->state_stack_words);
	walk->top.frame_at = context + at->state_frame;
	walk->top.frame = word(walk, at->state_frame);
	walk->top.instruction_at = walk->top.frame + at->frame_instruction;
	return 1;
}

/* Frames of functions in C are left out: they are among the native ones. */
__u64 ruby_frame(struct python_walk *walk, const struct memtoll_target *process, __u64 frame)
{
	const struct memtoll_python_offsets *at;
	__u64 code, instruction, flags;

	if (!walk || !process || frame >= walk->frames_end)
		return 0;
	at = &process->python;
	if (!interpreter_read(walk, frame, at->frame_bytes)) {
		walk->python.flags |= PYTHON_BROKEN;
		lose(LOST_PYTHON_WALK, 1);
		return 0;
	}
	code = word(walk, at->frame_code);
	instruction = word(walk, at->frame_instruction);
	if (frame == walk->top.frame)
		walk->top.instruction = instruction;
	if (code && instruction) {
		flags = pointer_at(word(walk, at->frame_owner));
		if (FRAME_KIND(flags) != FRAME_OUTERMOST)
			append(&walk->python, code, instruction,
			       flags & FRAME_FINISH ? PYTHON_ENTRY : 0);
	}
	return frame + at->frame_bytes < walk->frames_end ? frame + at->frame_bytes : 0;
}
