/* SPDX-License-Identifier: GPL-2.0 */
/*
 * sampling.h: which allocations --sample chooses. Points lie on the stream of a thread's allocated
 * bytes as a Poisson process does, one in `mean` bytes; a block is chosen if a point falls into it,
 * with probability 1 - exp(-size / mean). Distances between points are exponential, and forget the
 * past: after a chosen block the next one is drawn anew from its end.
 *
 * Included by the BPF side and by userspace (the test draws as the kernel does); includes nothing.
 */
#ifndef MEMTOLL_SAMPLING_H
#define MEMTOLL_SAMPLING_H

#include "types.h"

#define SAMPLING_LOG_BITS 7
#define SAMPLING_LOG_STEPS (1 << SAMPLING_LOG_BITS)
#define SAMPLING_UNIT 24	 /* fixed point: bits behind the point */
#define SAMPLING_LN2 11629080ULL /* of 2^24 */
/* mean times 32 in 24 bits must fit 64. */
#define SAMPLING_MEAN_MAX (1ULL << 32)

/* Of a table of log2(1 + i / 128) in units of 2^-24, for i from 0 to 128: sampling_fill(). */
#define SAMPLING_LOG_ENTRIES (SAMPLING_LOG_STEPS + 1)

/*
 * A distance to the next point: -ln(u) * mean, for u = random / 2^32, uniform. Linear between the
 * steps of the table, which is right to 10^-5.
 */
static inline __attribute__((always_inline)) __u64 sampling_gap(const volatile __u32 *log,
								__u64 mean, __u32 random)
{
	__u64 bits = random ? random : 1, high = 31, fraction, negative, low;
	__u32 step;

	/* bits = 2^high * (1 + fraction / 2^31). No loop and no builtin: the verifier of 6.1. */
	if (!(bits >> 16)) {
		bits <<= 16;
		high -= 16;
	}
	if (!(bits >> 24)) {
		bits <<= 8;
		high -= 8;
	}
	if (!(bits >> 28)) {
		bits <<= 4;
		high -= 4;
	}
	if (!(bits >> 30)) {
		bits <<= 2;
		high -= 2;
	}
	if (!(bits >> 31)) {
		bits <<= 1;
		high -= 1;
	}
	fraction = bits & 0x7fffffff;
	step = fraction >> (31 - SAMPLING_LOG_BITS) & (SAMPLING_LOG_STEPS - 1);
	low = log[step];
	fraction &= (1ULL << (31 - SAMPLING_LOG_BITS)) - 1;
	low += (log[step + 1] - low) * fraction >> (31 - SAMPLING_LOG_BITS);
	negative = (32ULL << SAMPLING_UNIT) - (high << SAMPLING_UNIT) - low;
	/* Rounded up: never 0, which would mean that none was drawn yet. */
	return (mean * (negative * SAMPLING_LN2 >> SAMPLING_UNIT) >> SAMPLING_UNIT) + 1;
}

#endif /* MEMTOLL_SAMPLING_H */
