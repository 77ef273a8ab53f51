// SPDX-License-Identifier: GPL-2.0
/*
 * v8.bpf.c: the frames of JavaScript functions in V8, the engine of Node.js: by what V8 says of itself
 * for debuggers (v8dbg_*).
 *
 * What V8 makes keeps the frame pointer, and below it the function, interpreted or compiled; so where
 * the stack's walk had to go by frame pointers the chain of these frames begins. The function is an
 * object of the moment: what stands for it is the part that all made of the same code share.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "wire/losses.h"
#include "state/losses.bpf.h"
#include "stacks/interpreter.bpf.h"
#include "stacks/python.bpf.h"

/* Of a frame, from 16 bytes below its pointer on. */
#define FRAME_BELOW 16
#define FRAME_FUNCTION 0
#define FRAME_CONTEXT 8 /* or, not tagged as a pointer, twice the kind of frame that it is */
#define FRAME_CALLER 16
#define FRAME_RETURN 24
#define FRAME_BYTES 32

static __always_inline bool is_object(__u64 value)
{
	return (value & 3) == 1;
}

int v8_top(struct python_walk *walk, const struct memtoll_target *process)
{
	if (!walk || !process)
		return 0;
	walk->top.frame_at = 0;
	if (!walk->generated_bp)
		return 0;
	/* The same code at the same place of the stack: the function and the caller tell. */
	walk->top.frame_at = walk->generated_bp - FRAME_BELOW + FRAME_FUNCTION;
	walk->top.frame = pointer_at(walk->top.frame_at);
	walk->top.instruction_at = walk->generated_bp - FRAME_BELOW + FRAME_RETURN;
	walk->top.instruction = pointer_at(walk->top.instruction_at);
	return 1;
}

/* The stack's walk has passed the first frame: what cannot be read is no frame, and nothing is lost. */
__u64 v8_frame(struct python_walk *walk, const struct memtoll_target *process, __u64 frame)
{
	const struct memtoll_python_offsets *at;
	__u64 function, context, code, caller;

	if (!walk || !process || (frame & 7) ||
	    !interpreter_read(walk, frame - FRAME_BELOW, FRAME_BYTES))
		return 0;
	at = &process->python;
	function = word(walk, FRAME_FUNCTION);
	context = word(walk, FRAME_CONTEXT);
	caller = word(walk, FRAME_CALLER);
	if (!(context & 1)) {
		/* Where C++ has called JavaScript. */
		if (context >> 1 == at->frame_owner || context >> 1 == at->frame_previous)
			return 0;
	} else if (is_object(function)) {
		code = pointer_at(function - 1 + at->code_start);
		if (is_object(code))
			append(&walk->python, code, walk->generated_ip, PYTHON_ENTRY);
	}
	walk->generated_ip = word(walk, FRAME_RETURN);
	return caller > frame ? caller : 0;
}
