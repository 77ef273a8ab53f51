/* SPDX-License-Identifier: GPL-2.0 */
/* slow_check.h: how many calls of a live process go an allocator's slow way, and with what. */
#ifndef MEMTOLL_SLOW_CHECK_H
#define MEMTOLL_SLOW_CHECK_H

#include <sys/types.h>

#include "allocators/modules.h"
#include "allocators/slow_path.h"
#include "probes/attach.h"

/* Calls of one function. */
struct slow_check {
	uint64_t entered;
	uint64_t agreed; /* came to a place of the slow way with what had been asked for */
	uint64_t differed;
	double entered_per_s; /* of the clock, while it was watched */
	double slow_per_s;
};

#define SLOW_CHECK_MS 1000
#define SLOW_CHECK_CALLS 20000 /* of all functions */

/*
 * Watch the functions whose slow way was found, where they are probed and at its places, for so
 * many calls or so long. checks has an element for each of the module's points. 0 or -errno.
 */
int slow_check(pid_t pid, enum uprobe_mechanism mechanism, const struct allocator_module *module,
	       const struct slow_paths *paths, unsigned int ms, uint64_t calls,
	       struct slow_check *checks);

/* The slow way of a point; NULL: there is none to be looked for. */
const struct slow_path *slow_path_of(const struct slow_paths *paths,
				     const struct probe_point *point);

#endif /* MEMTOLL_SLOW_CHECK_H */
