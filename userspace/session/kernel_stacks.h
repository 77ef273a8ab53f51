/* SPDX-License-Identifier: GPL-2.0 */
/* kernel_stacks.h: the stacks in the kernel's table by process; those of dead ones are deleted. */
#ifndef MEMTOLL_KERNEL_STACKS_H
#define MEMTOLL_KERNEL_STACKS_H

#include <stdint.h>
#include <sys/types.h>

struct kernel_stacks;
struct memtoll_bpf;
struct memtoll_new_stack;
struct targets;

struct kernel_stacks *kernel_stacks_new(struct memtoll_bpf *bpf);
void kernel_stacks_free(struct kernel_stacks *stacks);

/* A record of the ring buffer: a stack was added. */
void kernel_stacks_add(struct kernel_stacks *stacks, const struct memtoll_new_stack *stack);

/* A process has ended: all of its stacks have come. */
void kernel_stacks_exited(struct kernel_stacks *stacks, pid_t pid);

/* How many belong to processes that have ended since the last kernel_stacks_drop(). */
unsigned int kernel_stacks_dead(const struct kernel_stacks *stacks);

/* Those of a process. Looks through the whole table where records of some were lost. */
void kernel_stacks_each(const struct kernel_stacks *stacks, pid_t pid,
			void (*each)(void *context, uint64_t id), void *context);

/* Delete those of processes that are not followed, or no longer. */
void kernel_stacks_drop(struct kernel_stacks *stacks, struct targets *targets,
			void (*dropped)(void *context, uint64_t id), void *context);

#endif /* MEMTOLL_KERNEL_STACKS_H */
