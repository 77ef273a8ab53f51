/* SPDX-License-Identifier: GPL-2.0 */
/*
 * python_offsets.h: where CPython, and other interpreters, keep their frames, and the record of those
 * of a stack.
 */
#ifndef MEMTOLL_WIRE_PYTHON_OFFSETS_H
#define MEMTOLL_WIRE_PYTHON_OFFSETS_H

#include "types.h"

/* How an interpreter marks those of its frames that were called from C. */
enum memtoll_python_kind {
	PYTHON_NONE = 0,    /* no interpreter whose frames can be read */
	PYTHON_OBJECTS = 1, /* 3.9, 3.10: frame objects, each a run of the eval loop of its own */
	PYTHON_ENTRIES = 2, /* 3.11: the frame says so itself */
	PYTHON_SHIMS = 3,   /* 3.12 and later: a frame without code lies below */
	/* Others that are read alike: the frames' flags say so. */
	INTERPRETER_RUBY = 4, /* frames side by side, up to the end of the thread's stack of them */
	INTERPRETER_PHP = 5,  /* frames that point to the one below, of the first thread alone */
	INTERPRETER_V8 = 6,   /* frames that point to the one below, among those of native code */
	INTERPRETER_JAVA =
		7, /* HotSpot: frames among those of native code, where that is its own */
};

/* Bytes that are read at once of a thread state or of a frame, at most. */
#define MEMTOLL_PYTHON_CHUNK 256

/*
 * Where CPython keeps its frames: offsets in bytes, those of 8-byte fields multiples of 8. Of each
 * process, filled by userspace (python_offsets.c).
 */
struct memtoll_python_offsets {
	/*
	 * Address of _PyRuntime, or of PHP's executor_globals. Ruby: where a thread has the pointer to
	 * its state, from the beginning of its block of a module or from the thread's own pointer.
	 * Java: of the pointer to the StubQueue that has the interpreter's code.
	 */
	__u64 runtime;
	__u32 kind;		/* enum memtoll_python_kind */
	__u32 interpreters;	/* _PyRuntime: the first interpreter */
	__u32 current;		/* _PyRuntime: the thread state that holds the GIL; 0: not there */
	__u32 next_interpreter; /* interpreter: the next one */
	__u32 threads;		/* interpreter: its first thread state */
	__u16 state_bytes;	/* of a thread state, as far as it is needed */
	__u16 state_previous;
	__u16 state_next;
	__u16 state_interpreter;
	__u16 state_id;	    /* pthread_self() of its thread */
	__u16 state_status; /* bit 4: in use; 0: not there */
	__u16 state_frame;  /* the innermost frame, or what points to it */
	__u16 frame_bytes;
	__u16 frame_previous;
	__u16 frame_code;
	__u16 frame_instruction;
	/*
	 * Or, of PYTHON_ENTRIES and PHP, whether it was called from C. Ruby: what points to the word
	 * that says so.
	 */
	__u16 frame_owner;
	__u16 code_start;	/* code object: its first instruction */
	__u16 instruction_unit; /* PYTHON_OBJECTS: bytes that an instruction's number counts */
	__u8 indirect;		/* state_frame points to a place that points to the frame ... */
	__u8 indirect_offset;	/* ... at this offset */
	/* Ruby: the module of the thread's block, 0: none; the stack of frames, and its size in words. */
	__u16 block_module;
	__u16 state_stack;
	__u16 state_stack_words;
};

_Static_assert(sizeof(struct memtoll_python_offsets) == 64, "no hole in a map value");

/* frames[].flags */
#define PYTHON_ENTRY (1U << 0) /* called from C: those below ran in another eval loop */
#define PYTHON_EXACT (1U << 1) /* Java: while the stack is walked, not a return address */
/* Java: at which byte of its code the frame is; from bit 16 on which that is. */
#define PYTHON_AT (1U << 2)
#define PYTHON_AT_SHIFT 16

/* memtoll_python.flags */
#define PYTHON_TRUNCATED (1U << 0) /* deeper than MEMTOLL_PYTHON_DEPTH */
#define PYTHON_BROKEN (1U << 1)	   /* a frame could not be read: the rest is missing */

#define MEMTOLL_PYTHON_DEPTH 48

/*
 * The interpreter's frames of a stack that was not seen before, innermost first: record of the ring
 * buffer `pythons`, as long as it is deep. Urgent: what names them must be read while the code is
 * still in memory, so it has a ring buffer and a reader of its own.
 */
struct memtoll_python {
	__u64 stack_id;
	__u32 tgid;
	__u16 depth;
	__u16 flags;
	struct {
		__u64 code; /* code object; 0: an eval loop without a frame */
		/*
		 * Bytes into its code; negative: not begun. Ruby and PHP: the lower half of its
		 * address. V8, Java: that of the native code, as it is in the stack.
		 */
		__u32 instruction;
		__u32 flags;
	} frames[MEMTOLL_PYTHON_DEPTH];
};

_Static_assert(sizeof(struct memtoll_python) == 16 + 16 * MEMTOLL_PYTHON_DEPTH,
	       "wire size of struct memtoll_python");

#endif /* MEMTOLL_WIRE_PYTHON_OFFSETS_H */
