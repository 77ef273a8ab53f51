/* SPDX-License-Identifier: GPL-2.0 */
/*
 * nameless.h: stacks of processes that were gone before anything of their code could be read.
 *
 * A process that lives for a millisecond leaves forty stacks in the code that touched its pages,
 * and nothing is known of them but how deep they are, or not even that where the kernel's table was
 * full. Where it is said who touched, one stack of each depth stands for all: it says as much, and
 * a recording does not grow by them. Where it is said who allocated, each stays itself, for rows of
 * several tables belong together by it.
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

/* The stack that stands for this one: mostly itself. The same throughout a slice. */
uint64_t nameless_as(struct nameless *nameless, pid_t pid, uint64_t id);
void nameless_end_slice(struct nameless *nameless);

#endif /* MEMTOLL_NAMELESS_H */
