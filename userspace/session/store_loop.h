/* SPDX-License-Identifier: GPL-2.0 */
/*
 * store_loop.h: does code fill memory with one value, or copy it? Judged by the instructions around
 * a place of it: a loop that does nothing else, a row of stores, rep stos, rep movs. Pure.
 */
#ifndef MEMTOLL_STORE_LOOP_H
#define MEMTOLL_STORE_LOOP_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/wire/store_loops.h"

enum store_kind { STORE_NONE, STORE_FILL, STORE_COPY };

/* STORE_FILL: with what. Of a register only a sample tells; of some vectors, what they stored. */
enum store_value { VALUE_SAMPLED, VALUE_ZERO, VALUE_OTHER };

struct store_loop {
	enum store_kind kind;
	enum store_value value;
	/*
	 * What a loop can store in 16 cycles at most: a loop takes one cycle a turn, for each of
	 * its stores, for five of its instructions. 0: as much as memset does.
	 */
	uint32_t bytes_per_16_cycles;
	uint32_t length; /* bytes of a filling, where the code has it as a number; 0: it has not */
	size_t head;	 /* offset of its first instruction, the same wherever at */
	size_t end;	 /* behind its last one; 0: it is one instruction */
	struct memtoll_store_loop wire; /* `code` is left to whoever sends it */
};

/* How much of the code before and behind a place is worth knowing. */
#define STORE_LOOP_WINDOW 192

/* at: offset of an instruction in code, the one that is next. */
void store_loop_find(const uint8_t *code, size_t len, size_t at, struct store_loop *loop);
/* The offset of the instruction behind one of a loop; the loop's end behind the last one. */
size_t store_loop_next(const uint8_t *code, const struct store_loop *loop, size_t at);

#endif /* MEMTOLL_STORE_LOOP_H */
