/* SPDX-License-Identifier: GPL-2.0 */
/*
 * thread_stacks.h: where the stack of each thread is. One that waits says it itself, by its stack
 * pointer (/proc/PID/task/TID/syscall); of one that runs, or waits for a processor, the kernel says
 * nothing, but the C library has its descriptor at the top of its stack.
 */
#ifndef MEMTOLL_THREAD_STACKS_H
#define MEMTOLL_THREAD_STACKS_H

#include <glib.h>
#include <stdint.h>
#include <sys/types.h>

#include "hold/memory_view.h"
#include "host/maps.h"

#define THREAD_STACKS_MAX 4096U /* that are looked for */

struct thread_stack {
	pid_t tid;
	char comm[64];
	uint64_t pointer; /* an address in it; 0: not known */
};

/*
 * An array of struct thread_stack, of the first THREAD_STACKS_MAX; never NULL. *threads: how many
 * there are.
 */
GArray *thread_stacks_find(pid_t pid, const struct memory_view *view, uint64_t *threads);
/* Of those whose pointer is 0, what the memory says; for tests. */
void thread_stacks_from_descriptors(pid_t pid, const struct memory_view *view,
				    const struct maps *maps, GArray *stacks);

#endif /* MEMTOLL_THREAD_STACKS_H */
