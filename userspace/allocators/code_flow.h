/* SPDX-License-Identifier: GPL-2.0 */
/*
 * code_flow.h: follows values through a function's code: what may be in a register at each of its
 * instructions, over all ways that lead there. It knows only what an allocator's functions are
 * given and hand on; what it cannot follow is FLOW_OTHER, never a guess.
 */
#ifndef MEMTOLL_CODE_FLOW_H
#define MEMTOLL_CODE_FLOW_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "symbols/instruction.h"

/* What a value may be: bits, because different ways bring different ones. */
#define FLOW_OTHER (1U << 0)
#define FLOW_COUNT (1U << 1)	/* calloc's number of elements */
#define FLOW_ELEMENT (1U << 2)	/* and the size of each */
#define FLOW_SIZE (1U << 3)	/* the bytes that were asked for */
#define FLOW_PADDED (1U << 4)	/* calculated from them */
#define FLOW_BLOCK (1U << 5)	/* the block that was passed */
#define FLOW_CHUNK (1U << 6)	/* 16 bytes before it, where glibc's header of it begins */
#define FLOW_DATA (1U << 7)	/* an address in the file's writable data */
#define FLOW_LOADED (1U << 8)	/* 8 bytes out of memory */
#define FLOW_RETURNED (1U << 9) /* by a function */
#define FLOW_NUMBER (1U << 10)	/* a constant */
#define FLOW_STACK (1U << 11)	/* an address in the frame */
#define FLOW_FRAME (1U << 12)	/* rbp, as the function was entered with it */

/* For FLOW_DATA the address, for FLOW_STACK bytes from the return address, upwards. */
struct flow_value {
	uint32_t may;
	int64_t at;
};

#define FLOW_REGISTERS 16 /* in the numbering of instructions: rax 0, rcx 1 ... */
#define FLOW_RAX 0
#define FLOW_RCX 1
#define FLOW_RDX 2
#define FLOW_RSP 4
#define FLOW_RBP 5
#define FLOW_RSI 6
#define FLOW_RDI 7
#define FLOW_SLOTS 48 /* words below the return address that are followed */

struct flow_state {
	struct flow_value registers[FLOW_REGISTERS];
	struct flow_value slots[FLOW_SLOTS];
	bool leaked; /* the address of the frame has gone elsewhere: others may write there */
};

/* The code of a file, with its own addresses. */
struct flow_code {
	struct code code;
	uint64_t address; /* of the first byte */
	uint64_t data_start, data_end;
	/* Extent of the function at an address; false: there is none. */
	bool (*extent)(uint64_t address, uint64_t *start, uint64_t *end, void *argument);
	void *argument;
	GHashTable *returns; /* which functions come back, as far as asked */
	unsigned int steps;  /* looked at so far */
};

bool flow_code_init(struct flow_code *code, const uint8_t *bytes, size_t len, uint64_t address);
void flow_code_free(struct flow_code *code);

/* One function, followed from a place and a state on. */
struct flow {
	struct flow_code *code;
	uint64_t start, end;
	struct flow_state **states; /* by offset from start: before the instruction; NULL: no way */
};

/* Nothing known of any register, the stack pointer at the return address. */
void flow_entry(struct flow_state *state);
/*
 * Follow the function around an address from there on. No way leads past a call of cut (0: of
 * none). False: no such function, it is too large, or its code cannot be decoded.
 */
bool flow_run(struct flow_code *code, uint64_t address, const struct flow_state *state,
	      uint64_t cut, struct flow *flow);
void flow_free(struct flow *flow);

/* The instruction at an offset, if some way leads there, with its state. */
const struct flow_state *flow_at(const struct flow *flow, size_t offset, struct instruction *one);
/* Where it goes on inside the function: offsets, at most two. */
size_t flow_next(const struct flow *flow, const struct instruction *one, uint64_t cut,
		 size_t next[2]);
/* Is it a call, or a jump out of the function, to a known address? */
bool flow_leaves(const struct flow *flow, const struct instruction *one, uint64_t *target,
		 bool *is_call);
/* The value that a mov writes to memory that is not the frame's; NULL: it does not. */
const struct flow_value *flow_stored(const struct flow_state *state, const struct instruction *one);
/* Bytes by which the stack pointer has moved down since the entry; false: not known. */
bool flow_depth(const struct flow_state *state, uint32_t *depth);
/*
 * Where the rbp of the function's caller is: bytes from the return address, 0: still in its
 * register. False: not known.
 */
bool flow_caller_rbp(const struct flow_state *state, int32_t *at);

#endif /* MEMTOLL_CODE_FLOW_H */
