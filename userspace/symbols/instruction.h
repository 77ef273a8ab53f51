/* SPDX-License-Identifier: GPL-2.0 */
/* instruction.h: single instructions: what they read, write and jump to. */
#ifndef MEMTOLL_INSTRUCTION_H
#define MEMTOLL_INSTRUCTION_H

#include <Zydis/Zydis.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSTRUCTION_BYTES 15 /* of the longest */

struct instruction {
	size_t at;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

struct code {
	ZydisDecoder decoder;
	const uint8_t *bytes;
	size_t len;
};

bool code_decode(const struct code *code, size_t at, struct instruction *into);

/* Registers stand for all of their parts, from here on: rax for al, zmm0 for xmm0. */
ZydisRegister register_whole(ZydisRegister reg);
bool register_is_general(ZydisRegister reg);
bool register_is_vector(ZydisRegister reg);

bool instruction_writes(const struct instruction *one, ZydisRegister reg);
bool is_plain_move(ZydisMnemonic mnemonic);
/* What moves pointers and counters, and compares them. */
bool is_counting(ZydisMnemonic mnemonic);
/* Sets a register to 0, whatever it was. */
bool instruction_clears(const struct instruction *one);
/* The operand in memory, if the instruction reads or writes one. */
const ZydisDecodedOperand *instruction_memory(const struct instruction *one);
/* The register that a move to memory stores or one from memory fills; ZYDIS_REGISTER_NONE: none. */
ZydisRegister instruction_moves(const struct instruction *one);
bool instruction_jumps(const struct instruction *one, size_t *target);
/* By how much it moves what it writes on; false: by something else than a number. */
bool instruction_steps(const struct instruction *one, int64_t *step);

/*
 * The last instruction before a place, in the order of addresses, that sets a register. Decoding
 * from anywhere falls in step with the code; what is nearest counts, and a call or the end of a
 * function lets nothing through.
 */
bool code_set_before(const struct code *code, size_t place, ZydisRegister reg,
		     struct instruction *into);
/* Whether that clears it. */
bool code_clears_before(const struct code *code, size_t place, ZydisRegister reg);

#endif /* MEMTOLL_INSTRUCTION_H */
