/* SPDX-License-Identifier: GPL-2.0 */
/* allocator_stacks.h: which of the allocator's functions a stack is in, where no probe tells. */
#ifndef MEMTOLL_ALLOCATOR_STACKS_H
#define MEMTOLL_ALLOCATOR_STACKS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "symbols/symbolize.h"
#include "targets/targets.h"

struct allocator_stacks;

struct allocator_code {
	unsigned int fn;   /* FN_NONE: not known, or none */
	bool in_allocator; /* known or not */
};

/* stacks_fd: the map of stacks. */
struct allocator_stacks *allocator_stacks_new(int stacks_fd, struct symbolizer *symbolizer);
void allocator_stacks_free(struct allocator_stacks *stacks);

/* The stack of a call that was seen: what it returns to calls this function. */
void allocator_stacks_learn(struct allocator_stacks *stacks, unsigned int fn, uint64_t stack_id);

/* What was found of the stack before; false: nothing was, or it may be found otherwise by now. */
bool allocator_stacks_known(const struct allocator_stacks *stacks, uint64_t stack_id,
			    bool in_memset, struct allocator_code *code);

/* targets: whose allocators count; NULL: functions are known by their names only. */
struct allocator_code allocator_stacks_judge(struct allocator_stacks *stacks,
					     const struct targets *targets, uint64_t stack_id,
					     bool in_memset);

/* The process has another image. */
void allocator_stacks_forget_process(struct allocator_stacks *stacks, pid_t pid);

/* It will not be asked for again. */
void allocator_stacks_forget(struct allocator_stacks *stacks, uint64_t stack_id);

#endif /* MEMTOLL_ALLOCATOR_STACKS_H */
