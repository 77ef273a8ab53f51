/* SPDX-License-Identifier: GPL-2.0 */
/* slow_places.h: probes that only calls meet which the thread's cache does not answer. */
#ifndef MEMTOLL_WIRE_SLOW_PLACES_H
#define MEMTOLL_WIRE_SLOW_PLACES_H

#include "types.h"

/* Of all C libraries together; one has 4 to 8. */
#define SLOW_CALLERS_MAX 1024

/*
 * Key of map slow_callers: a place, by its cookie, and from where it was called: the return address
 * less the probed one. 0: the place is in the function itself, and nobody calls it.
 */
struct memtoll_slow_key {
	__u32 place;
	__s32 from;
};

_Static_assert(sizeof(struct memtoll_slow_key) == 8, "no padding in a map key");

/* Whose call it is; what is not in the map is no call of a function that is watched here. */
struct memtoll_slow_caller {
	__s32 function; /* the function's address less the probed one */
	__u32 above;	/* bytes from the stack pointer to its value at that function's entry */
	__s32 rbp;	/* from there to the caller's rbp; 0: still in the register */
	__u32 retried;	/* where it gets no block, another call follows */
};

#endif /* MEMTOLL_WIRE_SLOW_PLACES_H */
