// SPDX-License-Identifier: GPL-2.0
/*
 * php.bpf.c: the frames of a PHP interpreter built without threads (Zend/zend_compile.h of its
 * sources): its state is one for the whole process, whose first thread runs it.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "wire/losses.h"
#include "state/losses.bpf.h"
#include "stacks/interpreter.bpf.h"
#include "stacks/python.bpf.h"

#define CALL_TOP (1ULL << 17) /* ZEND_CALL_TOP: the eval loop was called for it */
#define INTERNAL_FUNCTION 1   /* the bit: 2 and 4 are code of PHP's */

int php_top(struct python_walk *walk, const struct memtoll_target *process)
{
	const struct memtoll_python_offsets *at;
	__u64 thread = bpf_get_current_pid_tgid();

	if (!walk || !process || (__u32)thread != thread >> 32)
		return 0;
	at = &process->python;
	walk->top.frame_at = at->runtime + at->state_frame;
	walk->top.frame = pointer_at(walk->top.frame_at);
	walk->top.instruction_at = walk->top.frame + at->frame_instruction;
	if (!walk->top.frame) {
		walk->top.instruction_at = walk->top.frame_at;
		walk->top.instruction = 0;
	}
	return 1;
}

/* Frames of functions in C are left out: they are among the native ones. */
__u64 php_frame(struct python_walk *walk, const struct memtoll_target *process, __u64 frame)
{
	const struct memtoll_python_offsets *at;
	__u64 function, instruction;
	__u8 type = 0;

	if (!walk || !process)
		return 0;
	at = &process->python;
	if (!interpreter_read(walk, frame, at->frame_bytes)) {
		walk->python.flags |= PYTHON_BROKEN;
		lose(LOST_PYTHON_WALK, 1);
		return 0;
	}
	function = word(walk, at->frame_code);
	instruction = word(walk, at->frame_instruction);
	if (frame == walk->top.frame)
		walk->top.instruction = instruction;
	if (function && !bpf_probe_read_user(&type, sizeof(type), (void *)function) && type &&
	    !(type & INTERNAL_FUNCTION))
		append(&walk->python, function, instruction,
		       word(walk, at->frame_owner) & CALL_TOP ? PYTHON_ENTRY : 0);
	return word(walk, at->frame_previous);
}
