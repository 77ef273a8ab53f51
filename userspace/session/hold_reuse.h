/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hold_reuse.h: how much of what malloc_trim(0) would have given back at a look was used again
 * until later ones.
 */
#ifndef MEMTOLL_HOLD_REUSE_H
#define MEMTOLL_HOLD_REUSE_H

#include <stdint.h>

struct recording;
struct trim_reuse;

/*
 * Table hold_reuse: of a look, as hold.schema.json has it; anything else has none. now_ns:
 * CLOCK_MONOTONIC. 0 or -errno.
 */
int hold_reuse_write(struct recording *recording, uint64_t look, const char *json,
		     struct trim_reuse *reuse, uint64_t now_ns);

#endif /* MEMTOLL_HOLD_REUSE_H */
