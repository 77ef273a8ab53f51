/* SPDX-License-Identifier: GPL-2.0 */
/* priority.h: memtoll comes before others on the CPU only as long as it takes little of it. */
#ifndef MEMTOLL_PRIORITY_H
#define MEMTOLL_PRIORITY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A window of probes that is closed late, because memtoll waited for a CPU, costs the target; so its
 * threads have this nice value, where the kernel lets them. Not when memtoll itself takes more than
 * PRIORITY_SHARE of a core, slice after slice: then its work, not its waiting, is what others feel. (A
 * few it may, when it names a large program's code: that is over the sooner.) It comes back when it
 * takes less than half of that.
 */
#define PRIORITY_NICE (-10)
#define PRIORITY_SHARE 0.1
#define PRIORITY_PATIENCE 5	/* slices */

struct priority {
	int usual;		/* nice value that memtoll was started with */
	bool raised;
	unsigned int above;	/* slices, one after the other */
	uint64_t cpu_ns;	/* of the whole process, and when it was looked at */
	uint64_t at_ns;
};

void priority_begin(struct priority *priority);
/* To be called once a slice. */
void priority_step(struct priority *priority);
/* As it was before priority_begin(). May be called again, and without it. */
void priority_end(struct priority *priority);

/* Whether it is to be raised, after a slice more in which it has taken so much of so long. */
bool priority_wanted(struct priority *priority, uint64_t cpu_ns, uint64_t wall_ns);

#endif /* MEMTOLL_PRIORITY_H */
