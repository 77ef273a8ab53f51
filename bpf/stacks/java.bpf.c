// SPDX-License-Identifier: GPL-2.0
/*
 * java.bpf.c: the methods of frames of HotSpot's interpreter, and where in them it is
 * (interpreter_frame_method_offset and interpreter_frame_bcp_offset in OpenJDK's
 * cpu/x86/frame_x86.hpp, the same from 17 to 25).
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "stacks/interpreter.bpf.h"
#include "stacks/java.bpf.h"
#include "stacks/python.bpf.h"

/* Of a frame, from 64 bytes below its pointer on. */
#define JAVA_BELOW 64
#define JAVA_BYTECODE 0 /* where it was at its last call, or when it last stopped */
#define JAVA_METHOD_AT 40
#define JAVA_BYTES 48

int java_note(struct python_walk *python, struct unwind *walk)
{
	if (!python || !walk)
		return 0;
	append(&python->python, walk->bp, walk->ip, walk->exact ? PYTHON_EXACT : 0);
	walk->irregular = 1;
	return 0;
}

/* The innermost frame: its method, and where that is. */
int java_top(struct python_walk *walk, const struct memtoll_target *process)
{
	if (!walk || !process)
		return 0;
	walk->top.frame_at = 0;
	if (!depth_get(&walk->python))
		return 0;
	walk->top.frame_at = walk->python.frames[0].code - JAVA_BELOW + JAVA_METHOD_AT;
	walk->top.frame = pointer_at(walk->top.frame_at);
	walk->top.instruction_at = walk->python.frames[0].code - JAVA_BELOW + JAVA_BYTECODE;
	walk->top.instruction = pointer_at(walk->top.instruction_at);
	return 1;
}

/* What the interpreter is at, where that is what runs: it keeps it in r13. */
static __always_inline __u64 bytecode_of_registers(void)
{
#if defined(__TARGET_ARCH_x86)
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());

	/* Not the same load as that of what was read, which 6.1 and 6.12 refuse. */
	return BPF_CORE_READ(regs, r13);
#else
	return 0;
#endif
}

/*
 * Of the frame with this number, from 1 on, the method in its place's stead; 0: it is no frame, as
 * nothing there is where it has to be. The next number; 0: that was the last.
 */
__u64 java_frame(struct python_walk *walk, const struct memtoll_target *process, __u64 frame)
{
	__u64 index = frame - 1, method = 0, bytecode = 0, constant, at = ~0ULL;
	__u32 flags;

	if (!walk || !process || index >= MEMTOLL_PYTHON_DEPTH || index >= depth_get(&walk->python))
		return 0;
	flags = walk->python.frames[index].flags;
	if (interpreter_read(walk, walk->python.frames[index].code - JAVA_BELOW, JAVA_BYTES)) {
		method = word(walk, JAVA_METHOD_AT);
		bytecode =
			flags & PYTHON_EXACT ? bytecode_of_registers() : word(walk, JAVA_BYTECODE);
		constant = method ? pointer_at(method + process->python.frame_code) : 0;
		at = bytecode - constant - process->python.code_start;
		if (!constant)
			method = 0;
	}
	/* What is native code to Java has none of its own, and the innermost place may be anywhere. */
	if (at >> 16 && bytecode && !(flags & PYTHON_EXACT))
		method = 0;
	walk->python.frames[index].code = method;
	walk->python.frames[index].flags =
		PYTHON_ENTRY | (at >> 16 ? 0 : PYTHON_AT | at << PYTHON_AT_SHIFT);
	return frame + 1;
}
