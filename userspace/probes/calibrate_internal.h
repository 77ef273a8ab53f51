/* SPDX-License-Identifier: GPL-2.0 */
/* calibrate_internal.h: between calibrate.c and calibrate_child.c. */
#ifndef MEMTOLL_CALIBRATE_INTERNAL_H
#define MEMTOLL_CALIBRATE_INTERNAL_H

#define ROUNDS 7
#define PAGES 1024
#define MIB (1UL << 20)
#define HUGE (2 * MIB)
#define LOOPS 65536
/* What stays in the nearest cache, what in the next, what comes from memory; in bytes. */
#define NEAR_BYTES (16UL << 10)
#define MIDDLE_BYTES (256UL << 10)
#define FAR_BYTES (512UL << 10)
#define SHORT_BYTES 256UL
#define SHORT_TIMES 256
#define NEAR_TIMES 32
#define MIDDLE_TIMES 4

/* One round of every loop, in nanoseconds of CPU time per step. */
enum figure {
	F_MALLOC,
	F_CALLOC,
	F_FREE,
	F_FAULT,
	F_MAP,
	F_READ,
	F_READ_OTHER,
	F_SYSCALL,
	F_MEMSET,
	F_MEMSET_SHORT,
	F_STRING_SHORT,
	F_MEMSET_NEAR,
	F_MEMSET_MIDDLE,
	F_MEMSET_FAR,
	F_CLEAR,
	F_HUGE,
	F_COPY,
	F_LOOP,
	FIGURES
};

struct round {
	double ns[FIGURES];
};

/* What the child is to time, sent as a byte. It answers with ROUNDS rounds. */
enum calibration_order {
	ORDER_BARE = 'b',   /* every loop */
	ORDER_PROBED = 'p', /* those in which probes are hit */
	ORDER_BLOCKS = 'a',
	ORDER_SYSCALLS = 's',
	ORDER_FAULTS = 'f', /* once: one round */
};

/* The child: executes orders until the pipe is closed. Does not return. */
void calibration_child(int order_fd, int result_fd) __attribute__((noreturn));

#endif /* MEMTOLL_CALIBRATE_INTERNAL_H */
