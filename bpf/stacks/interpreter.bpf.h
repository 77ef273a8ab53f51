/* SPDX-License-Identifier: GPL-2.0 */
/* interpreter.bpf.h: what reading the frames of any interpreter takes. */
#ifndef MEMTOLL_INTERPRETER_BPF_H
#define MEMTOLL_INTERPRETER_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "state/walks.bpf.h"

/* A field of what was read last. The masks let the verifier see that it lies inside. */
static __always_inline __u64 word(const struct python_walk *walk, __u16 offset)
{
	return *(__u64 *)&walk->chunk[offset & (MEMTOLL_PYTHON_CHUNK - 8)];
}

static __always_inline __u8 byte(const struct python_walk *walk, __u16 offset)
{
	return walk->chunk[offset & (MEMTOLL_PYTHON_CHUNK - 1)];
}

static __always_inline bool interpreter_read(struct python_walk *walk, __u64 address, __u32 bytes)
{
	if (bytes > sizeof(walk->chunk))
		return false;
	return !bpf_probe_read_user(walk->chunk, bytes, (void *)address);
}

/* A pointer; 0 where it cannot be read. */
static __always_inline __u64 pointer_at(__u64 address)
{
	__u64 value = 0;

	bpf_probe_read_user(&value, sizeof(value), (void *)address);
	return value;
}

/* What pthread_self() gives: the thread's own control block. */
static __always_inline __u64 thread_self(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

#if defined(__TARGET_ARCH_x86)
	return task->thread.fsbase;
#elif defined(__TARGET_ARCH_arm64)
	return task->thread.uw.tp_value;
#endif
}

/*
 * How many frames there are is kept in memory and read anew for each: a number that the verifier
 * knew would make it look at every frame of every possible depth.
 */
static __always_inline __u32 depth_get(const struct memtoll_python *python)
{
	return *(const volatile __u16 *)&python->depth;
}

/* Beyond the last place only the depth grows. */
static __always_inline void append(struct memtoll_python *python, __u64 code, __u32 instruction,
				   __u32 flags)
{
	__u32 depth = depth_get(python);

	if (depth < MEMTOLL_PYTHON_DEPTH) {
		python->frames[depth].code = code;
		python->frames[depth].instruction = instruction;
		python->frames[depth].flags = flags;
	}
	*(volatile __u16 *)&python->depth = depth + 1;
}

#endif /* MEMTOLL_INTERPRETER_BPF_H */
