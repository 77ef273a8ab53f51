/* SPDX-License-Identifier: GPL-2.0 */
/*
 * syscall_idle.h: whether the tracepoints of system calls are to be attached; pure,
 * budget_executor.c carries it out.
 *
 * They slow down every system call of the machine. For a program that changes no mappings, reads no
 * files and hardly takes a fault for a second they are detached; as soon as it does, they are
 * attached again, and stay for a while. Until then unwatched.bpf.c counts the calls that went
 * unwatched.
 */
#ifndef MEMTOLL_SYSCALL_IDLE_H
#define MEMTOLL_SYSCALL_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/types.h>

#include "bpf/wire/rates.h"

struct syscall_idle {
	bool watched;
	uint64_t since_ns;	    /* what is looked at began then, ... */
	struct memtoll_rates since; /* ... with these counts */
	uint64_t stays_ns;	    /* they stay until then */
};

/* They are attached. now_ns: of a clock that never goes back. rates: counted by then. */
void syscall_idle_begin(struct syscall_idle *idle, uint64_t now_ns,
			const struct memtoll_rates *rates);

/* Whether they are to be attached from now on. */
bool syscall_idle_step(struct syscall_idle *idle, uint64_t now_ns,
		       const struct memtoll_rates *rates);

#endif /* MEMTOLL_SYSCALL_IDLE_H */
