/* SPDX-License-Identifier: GPL-2.0 */
/*
 * nameless.h: stacks of processes that were gone before their code could be read. A process that
 * lives for a millisecond leaves forty stacks of code that touched its pages, of which only the
 * depth is known, or not even that where the kernel's table was full. As touching stacks, and those
 * of mapping calls, one of each depth stands for all: it says as much, and the recording does not
 * grow by them. As allocating stacks each stays itself, as rows of several tables are joined by it.
 */
#ifndef MEMTOLL_NAMELESS_H
#define MEMTOLL_NAMELESS_H

#include <stdint.h>
#include <sys/types.h>

struct nameless;
struct symbolizer;
struct targets;

/* stacks_fd: the kernel's table of stacks. */
struct nameless *nameless_new(int stacks_fd, struct symbolizer *symbolizer,
			      struct targets *targets);
void nameless_free(struct nameless *nameless);

/* The stack that stands for this one, mostly itself. The same throughout a slice. */
uint64_t nameless_as(struct nameless *nameless, pid_t pid, uint64_t id);
void nameless_end_slice(struct nameless *nameless);

#endif /* MEMTOLL_NAMELESS_H */
