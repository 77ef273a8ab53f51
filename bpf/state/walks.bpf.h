/* SPDX-License-Identifier: GPL-2.0 */
/* walks.bpf.h: walks over a stack, and over the frames of an interpreter. */
#ifndef MEMTOLL_WALKS_BPF_H
#define MEMTOLL_WALKS_BPF_H

#include "vmlinux.h"

#include "wire/python_offsets.h"

/*
 * Where an interpreter is: the words that change with it, and their values when its frames were
 * read.
 */
struct python_top {
	__u64 frame_at; /* 0: no interpreter */
	__u64 frame;	/* the innermost; 0: it could not be found */
	__u64 instruction_at;
	__u64 instruction;
};

/* To read an interpreter's frames. */
struct python_walk {
	struct python_top top;
	__u64 state;	    /* the thread state found last */
	__u64 frames_end;   /* Ruby: where the thread's stack of frames ends */
	__u64 candidate;    /* while it is searched for: the state to be looked at ... */
	__u64 interpreter;  /* ... and where to go on after the last of this interpreter's */
	__u64 generated_bp; /* the first frame that the stack's walk passed by its pointer ... */
	__u64 generated_ip; /* ... and the instruction there; 0: none */
	__u8 chunk[MEMTOLL_PYTHON_CHUNK];
	struct memtoll_python python;
	__u8 woken; /* who names the frames was woken for the last stack */
};

/* A walk over a stack: the registers of one frame, and the mapping that its code is in. */
struct unwind {
	__u64 ip;
	__u64 sp;
	__u64 bp;
	__u64 start;
	__u64 end;
	__u64 bias;
	__u32 table;
	__u32 process_table;
	__u32 exact; /* ip is an instruction, not a return address */
	__u32 leaf;  /* nothing but the return address is on its stack yet */
	__u32 flags; /* STACK_* */
	__u32 stop;
	__u64 bp_from;	     /* where rbp was read; 0: it is the first frame's */
	__u64 used_at;	     /* where the rbp was read that the last step went by, or its ip */
	__u64 used_word;     /* what was there */
	__u32 needs_bp;	     /* a step went by the first frame's rbp */
	__u32 stopped_by_bp; /* the walk ended because of what rbp is */
	__u32 irregular;     /* a step did not go by a rule, or read more than those two */
	__u32 stored;	/* set by memo_walk() for its caller: the stack is in the table already */
	__u32 switched; /* from one stack to another below it */
	__u64 generated_bp; /* rbp at the first step by frame pointer; 0: there was none */
	__u64 generated_ip; /* and what was executed there */
	__u64 place;	/* of the last step's frame in its module, and which that is; 0: unknown */
	__u64 began_ns; /* kept here: the BPF stack of the whole way is short (6.1) */
};

#endif /* MEMTOLL_WALKS_BPF_H */
