/* SPDX-License-Identifier: GPL-2.0 */
/*
 * store_loops.h: code at which CPU samples fell, as userspace has decoded it: what it stores, and
 * by which registers. Registers by their number in instructions.
 */
#ifndef MEMTOLL_WIRE_STORE_LOOPS_H
#define MEMTOLL_WIRE_STORE_LOOPS_H

#include "types.h"

#define MEMTOLL_STORE_LOOPS 16384 /* the least recently seen go first */

/* store_loop.flags */
#define STORE_ADDRESS (1U << 0)	 /* it stores at base + (index << shift) + disp */
#define STORE_INDEX (1U << 1)	 /* there is an index */
#define STORE_REGISTER (1U << 2) /* the value is in a general register */
#define STORE_DOWN (1U << 3)	 /* from higher addresses to lower ones */
#define STORE_LEFT (1U << 4)	 /* how much is left to do: by how far `counter` is off its end */
#define STORE_END (1U << 5)	 /* which is in a register; else it is `end_at` */
#define STORE_COUNTS_DOWN (1U << 6)

struct memtoll_store_key {
	__u64 ip;
	__u32 tgid;
	__u32 unused;
};

/* What is not decoded yet, or is other code by now (`code` differs), is decoded at its sample. */
struct memtoll_store_loop {
	__u64 code; /* what is at ip */
	__s32 disp;
	__u8 flags;
	__u8 base;
	__u8 index;
	__u8 shift;
	__u8 value;
	__u8 value_bits; /* of the register: the lowest, at least 1 */
	__u8 words;	 /* of 8 bytes, at most 8, that lie behind the address and were stored */
	__u8 unused;
	/*
	 * Not 0: the time there is that of a function which has just returned to it. Where in that
	 * the stores are, from ip.
	 */
	__s32 returned_from;
	__s32 end_at;
	__u8 counter;
	__u8 end;
	__u16 bytes_per_count;
};

_Static_assert(sizeof(struct memtoll_store_key) == 16, "wire size of struct memtoll_store_key");
_Static_assert(sizeof(struct memtoll_store_loop) == 32, "wire size of struct memtoll_store_loop");

#define STORE_WORDS 8 /* looked at, at most */

#endif /* MEMTOLL_WIRE_STORE_LOOPS_H */
