/* SPDX-License-Identifier: GPL-2.0 */
/* stacks.h: a stack, as map `stacks` has it under its id. */
#ifndef MEMTOLL_WIRE_STACKS_H
#define MEMTOLL_WIRE_STACKS_H

#include "types.h"

#define MEMTOLL_STACK_DEPTH 127

/* How a stack was made. */
enum memtoll_unwind {
	UNWIND_FP = 1,	/* frame pointers alone, first caller from the stack pointer */
	UNWIND_CFI = 2, /* call frame information, frame pointers where there was none */
};

#define STACK_TRUNCATED (1U << 0) /* deeper than MEMTOLL_STACK_DEPTH */
#define STACK_COMPLETE (1U << 1)  /* reached the thread's first frame */
#define STACK_SOME_FP (1U << 2)	  /* some frame by frame pointer */
#define STACK_SITE (1U << 3)	  /* the example of a call site; id is the site's */

/* Why the walk of a stack ended early. */
enum memtoll_unwind_stop {
	UNWIND_STOP_NONE = 0,
	UNWIND_STOP_NO_MAPPING = 1, /* an address in no known code */
	UNWIND_STOP_NO_ROW = 2,	    /* code without call frame information */
	UNWIND_STOP_RULE = 3,	    /* a rule that cannot be expressed */
	UNWIND_STOP_MEMORY = 4,	    /* the stack could not be read */
	UNWIND_STOP_PROBE = 5,	    /* a return probe was about to take the return address */
};

struct memtoll_stack {
	__u16 depth;
	__u8 how;
	__u8 flags;
	__u32 tgid;	   /* in which it was walked; others may have the same */
	__u64 exact[2];	   /* bit n: frames[n] is an instruction, not a return address */
	__u8 stop;	   /* enum memtoll_unwind_stop */
	__u8 python_depth; /* frames of the interpreter, sent under the same id */
	__u8 unused[6];
	/*
	 * Of its frames by the places that they have in their modules: the same for all processes
	 * that run this code, wherever each has it. Without the interpreter's.
	 */
	__u64 id;
	__u64 frames[MEMTOLL_STACK_DEPTH]; /* leaf first; return addresses where not exact */
};

_Static_assert(sizeof(struct memtoll_stack) == 40 + 8 * MEMTOLL_STACK_DEPTH,
	       "wire size of struct memtoll_stack");

#endif /* MEMTOLL_WIRE_STACKS_H */
