/* SPDX-License-Identifier: GPL-2.0 */
/*
 * java.bpf.h: frames of HotSpot's interpreter, as a stack's walk comes by them: between them may be
 * compiled code, which has no frame pointer, so that only the walk knows where they are.
 */
#ifndef MEMTOLL_JAVA_BPF_H
#define MEMTOLL_JAVA_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "stacks/interpreter.bpf.h"
#include "state/processes.bpf.h"
#include "state/settings.bpf.h"
#include "wire/targets.h"

/* Code of HotSpot's interpreter; none where the process has no other, or another. */
struct java_code {
	__u64 start;
	__u64 bytes;
};

/*
 * No frame is noted yet. Where the interpreter's code is, if there is one: the JVM makes it when it
 * starts, and says so from then on.
 */
static __always_inline void java_begin(struct python_walk *walk,
				       const struct memtoll_target *process, struct java_code *code)
{
	__u32 limit = 0;
	__u64 queue;

	code->start = 0;
	code->bytes = 0;
	walk->python.depth = 0;
	if (!python_seen || !process || process->python.kind != INTERPRETER_JAVA)
		return;
	queue = pointer_at(process->python.runtime);
	if (!queue ||
	    bpf_probe_read_user(&limit, sizeof(limit), (void *)(queue + process->python.threads)))
		return;
	code->start = pointer_at(queue + process->python.interpreters);
	code->bytes = code->start ? limit : 0;
}

/*
 * The walk is at a frame of the interpreter. Until java_frame() its place stands for its code. No memo
 * is made of such a walk: what tells one method from another are words that it does not go by.
 */
int java_note(struct python_walk *python, struct unwind *walk);

#endif /* MEMTOLL_JAVA_BPF_H */
