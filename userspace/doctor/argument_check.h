/* SPDX-License-Identifier: GPL-2.0 */
/* argument_check.h: proof, on a live process, that probes see what their functions were called with. */
#ifndef MEMTOLL_ARGUMENT_CHECK_H
#define MEMTOLL_ARGUMENT_CHECK_H

#include <sys/types.h>

#include "allocators/modules.h"
#include "probes/attach.h"

/* Of one probe point. A call is missed where entered exceeds the sum of the others for good. */
struct value_check {
	uint64_t entered;
	uint64_t agreed;	/* came by the place with the same arguments and stack */
	uint64_t differed;
};

#define VALUES_CALLS 61		/* after so many calls of each function nothing more is learnt */
#define VALUES_MS 250

/*
 * Watch the functions of a module that are probed behind their entry: there and, single-stepped by
 * the kernel, at the entry itself, until each was called VALUES_CALLS times, for VALUES_MS at most.
 * checks has an element for each of the module's points. 0, or -errno: nothing was watched.
 */
int values_check(pid_t pid, enum uprobe_mechanism mechanism, const struct allocator_module *module,
		 struct value_check *checks);

#endif /* MEMTOLL_ARGUMENT_CHECK_H */
