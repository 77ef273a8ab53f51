/* SPDX-License-Identifier: GPL-2.0 */
/*
 * unwind_rows.h: unwinding by call frame information. Userspace compiles .eh_frame of a module into
 * rows that ascend by pc: a row holds from its pc to that of the next one. pc is relative to the
 * module's lowest address in the file; no module has 4 GiB of code.
 *
 * A table is an array map of chunks. Chunk 0 is an index: for each other chunk, in order, the pc of
 * its first row; unused entries are ~0. The rows follow in the other chunks, the last one padded
 * with rows of pc ~0. A process's mappings make a table of the same kind, without an index.
 */
#ifndef MEMTOLL_WIRE_UNWIND_ROWS_H
#define MEMTOLL_WIRE_UNWIND_ROWS_H

#include "types.h"

#define UNWIND_CHUNK_BYTES 16384
#define UNWIND_CHUNK_ROWS (UNWIND_CHUNK_BYTES / 8)
#define UNWIND_INDEX_ENTRIES (UNWIND_CHUNK_BYTES / 4)
#define UNWIND_CHUNK_MAPPINGS (UNWIND_CHUNK_BYTES / 32)
#define UNWIND_MAPPING_CHUNKS 8 /* 4096 mappings of a process */
#define UNWIND_TABLES 4096	/* modules and processes together */

struct memtoll_unwind_row {
	__u32 pc;
	__u32 rule;
};

/* How the frame's address (CFA, the value of rsp before the call) is found: rule bits 0..2. */
enum memtoll_cfa {
	CFA_STOP = 0,	   /* no information, or a rule that cannot be expressed */
	CFA_END = 1,	   /* the return address is undefined: the thread's first frame */
	CFA_RSP = 2,	   /* rsp + offset */
	CFA_RBP = 3,	   /* rbp + offset */
	CFA_RBP_DEREF = 4, /* what lies at rbp + offset, + addend: a realigned stack */
	CFA_PLT = 5,	   /* rsp + 8 + ((rip & 15) >= offset / 8 ? 8 : 0) */
	CFA_SIGNAL = 6,	   /* rsp points to the ucontext that the kernel pushed */
	CFA_RSP_DEREF = 7, /* what lies at rsp + offset, + addend: assembly that kept rsp there */
};

/* Where the caller's rbp is: rule bits 3..4. */
enum memtoll_saved_rbp {
	RBP_SAME = 0,
	RBP_AT_CFA = 1, /* at CFA + offset */
	RBP_AT_RBP = 2, /* at rbp + offset: a realigned stack */
	RBP_UNKNOWN = 3,
};

/* Offsets are signed multiples of 8: 17 bits of the CFA's, 10 of rbp's. Return address: CFA - 8. */
#define UNWIND_CFA_SHIFT 5
#define UNWIND_CFA_BITS 17
#define UNWIND_RBP_SHIFT 22
#define UNWIND_RBP_BITS 10

#define UNWIND_CFA(rule) ((enum memtoll_cfa)((rule)&7))
#define UNWIND_SAVED_RBP(rule) ((enum memtoll_saved_rbp)((rule) >> 3 & 3))
/* Sign-extended by shifting the field to the top; in bytes. */
#define UNWIND_CFA_OFFSET(rule)                                                  \
	((__s64)((__s32)((rule) << (32 - UNWIND_CFA_SHIFT - UNWIND_CFA_BITS)) >> \
		 (32 - UNWIND_CFA_BITS)) *                                       \
	 8)
#define UNWIND_RBP_OFFSET(rule) ((__s64)((__s32)(rule) >> UNWIND_RBP_SHIFT) * 8)
/* The _DEREF rules: the upper 12 bits of the CFA's 17 are the offset, the lower 5 the addend. */
#define UNWIND_DEREF_BITS 12
#define UNWIND_ADDEND_BITS 5
#define UNWIND_DEREF_OFFSET(rule) ((UNWIND_CFA_OFFSET(rule) / 8 >> UNWIND_ADDEND_BITS) * 8)
#define UNWIND_ADDEND(rule) (((rule) >> UNWIND_CFA_SHIFT & ((1U << UNWIND_ADDEND_BITS) - 1)) * 8)

/* An executable mapping of a process, ascending by start; unused entries have start ~0. */
struct memtoll_unwind_mapping {
	__u64 start;
	__u64 end;
	__u64 bias;  /* address - bias is a row's pc */
	__u32 table; /* of the module; 0: none, frame pointers only */
	__u32 unused;
};

#endif /* MEMTOLL_WIRE_UNWIND_ROWS_H */
