/* SPDX-License-Identifier: GPL-2.0 */
/* priority.h: memtoll's nice value: raised priority as long as it uses little CPU. */
#ifndef MEMTOLL_PRIORITY_H
#define MEMTOLL_PRIORITY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * If memtoll has to wait for a CPU it detaches probes late, which costs the target; so its threads
 * have this nice value where the kernel allows it. Not when it uses more than PRIORITY_SHARE of a
 * core for PRIORITY_PATIENCE slices, since then its own work slows others down; a few busy slices
 * are allowed, as when the code of a large program is symbolized. Raised again when it uses less
 * than half of that.
 */
#define PRIORITY_NICE (-10)
#define PRIORITY_SHARE 0.1
#define PRIORITY_PATIENCE 5 /* slices */

struct priority {
	int usual; /* nice value that memtoll was started with */
	bool raised;
	unsigned int above; /* consecutive slices above PRIORITY_SHARE */
	uint64_t cpu_ns;    /* of the whole process, at time at_ns */
	uint64_t at_ns;
};

void priority_begin(struct priority *priority);
/* To be called once a slice. */
void priority_step(struct priority *priority);
/* Restore the nice value of before priority_begin(). May be called again, and without it. */
void priority_end(struct priority *priority);

/* Whether priority should be raised, after one more slice with this CPU and wall time. */
bool priority_wanted(struct priority *priority, uint64_t cpu_ns, uint64_t wall_ns);

#endif /* MEMTOLL_PRIORITY_H */
