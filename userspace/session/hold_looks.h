/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hold_looks.h: who holds the memory of the targets, looked at again and again while they are
 * recorded. A look at large heaps takes seconds: `memtoll hold` makes it, a process of its own, and
 * records go on being read.
 */
#ifndef MEMTOLL_HOLD_LOOKS_H
#define MEMTOLL_HOLD_LOOKS_H

#include <stdint.h>

struct consumers;
struct hold_looks;
struct recording;
struct targets;

/* A look at once, one so long after each began, and one at the end. */
struct hold_looks *hold_looks_new(uint64_t every_ns);
void hold_looks_free(struct hold_looks *looks);

/* Begin the look that is due, and take what the last one says. now_ns: CLOCK_MONOTONIC. */
void hold_looks_step(struct hold_looks *looks, uint64_t now_ns, struct targets *targets);

/* The last one, where targets live: the one that goes on, or another; waits for it, for seconds. */
void hold_looks_end(struct hold_looks *looks, struct targets *targets);

/* Tables hold_look, hold_part, hold_pin and hold_reuse: looks that have ended since. 0 or -errno. */
int hold_looks_write(struct hold_looks *looks, struct recording *recording,
		     const struct consumers *consumers);

#endif /* MEMTOLL_HOLD_LOOKS_H */
