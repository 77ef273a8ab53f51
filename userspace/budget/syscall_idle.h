/* SPDX-License-Identifier: GPL-2.0 */
/*
 * syscall_idle.h: whether the tracepoints of system calls are to be there; pure, budget_executor.c carries it out.
 *
 * They slow down every system call of the machine. A program that changes no mappings, reads no files and
 * hardly takes a fault for a second is left without them; as soon as it does, they come back,
 * and stay for a while. What tells of it meanwhile (unwatched.bpf.c) says how many calls went unwatched.
 */
#ifndef MEMTOLL_SYSCALL_IDLE_H
#define MEMTOLL_SYSCALL_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/types.h>

#include "bpf/wire/events.h"

struct quiet {
	bool watched;
	uint64_t since_ns;		/* what is looked at began then, ... */
	struct memtoll_rates since;	/* ... with these counts */
	uint64_t stays_ns;		/* they stay until then */
};

/* They are there. now_ns: of a clock that never goes back. rates: counted by then. */
void quiet_begin(struct quiet *quiet, uint64_t now_ns, const struct memtoll_rates *rates);

/* Whether they are to be there from now on. */
bool quiet_step(struct quiet *quiet, uint64_t now_ns, const struct memtoll_rates *rates);

#endif /* MEMTOLL_SYSCALL_IDLE_H */
