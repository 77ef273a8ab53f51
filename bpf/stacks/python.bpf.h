/* SPDX-License-Identifier: GPL-2.0 */
/* python.bpf.h: the frames of an interpreter, CPython or another. */
#ifndef MEMTOLL_PYTHON_BPF_H
#define MEMTOLL_PYTHON_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "state/walks.bpf.h"
#include "wire/stacks.h"
#include "wire/targets.h"

struct pythons_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1048576);
};
extern struct pythons_map pythons SEC(".maps");

int python_state(struct python_walk *walk, const struct memtoll_target *process, __u64 state);
int python_search(struct python_walk *walk, const struct memtoll_target *process);
int python_same_state(struct python_walk *walk, const struct memtoll_target *process);
__u64 python_frame(struct python_walk *walk, const struct memtoll_target *process, __u64 frame);
/*
 * Those of the others: where the innermost one is, for the walk; then each, and the one below it as
 * python_frame() does.
 */
int ruby_top(struct python_walk *walk, const struct memtoll_target *process);
__u64 ruby_frame(struct python_walk *walk, const struct memtoll_target *process, __u64 frame);
int php_top(struct python_walk *walk, const struct memtoll_target *process);
__u64 php_frame(struct python_walk *walk, const struct memtoll_target *process, __u64 frame);
int v8_top(struct python_walk *walk, const struct memtoll_target *process);
__u64 v8_frame(struct python_walk *walk, const struct memtoll_target *process, __u64 frame);
/* Java's frames are noted by the stack's walk, each where rbp is. */
int java_top(struct python_walk *walk, const struct memtoll_target *process);
__u64 java_frame(struct python_walk *walk, const struct memtoll_target *process, __u64 frame);
__u64 python_walk(struct python_walk *walk, const struct memtoll_target *process, __u64 id);
int python_emit(__u64 id, struct memtoll_python *python);
__u64 python_add(struct memtoll_stack *stack, struct python_walk *walk, __u64 id);

#endif /* MEMTOLL_PYTHON_BPF_H */
