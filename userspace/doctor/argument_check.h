/* SPDX-License-Identifier: GPL-2.0 */
/* argument_check.h: checks on a live process that probes read the arguments of their functions. */
#ifndef MEMTOLL_ARGUMENT_CHECK_H
#define MEMTOLL_ARGUMENT_CHECK_H

#include <sys/types.h>

#include "allocators/modules.h"
#include "probes/attach.h"

/* Calls of one probe point. If entered stays above the sum of the others, calls were missed. */
struct argument_check {
	uint64_t entered;
	uint64_t agreed; /* reached the probed place with the same arguments and stack */
	uint64_t differed;
};

#define ARGUMENT_CHECK_CALLS 61 /* enough calls of each function */
#define ARGUMENT_CHECK_MS 250

/*
 * Watch the functions of a module that are probed behind their entry: there and, single-stepped by
 * the kernel, at the entry itself, until each was called ARGUMENT_CHECK_CALLS times, but no longer
 * than ARGUMENT_CHECK_MS. checks has an element for each of the module's points. 0, or -errno:
 * nothing was watched.
 */
int arguments_check(pid_t pid, enum uprobe_mechanism mechanism,
		    const struct allocator_module *module, struct argument_check *checks);

#endif /* MEMTOLL_ARGUMENT_CHECK_H */
