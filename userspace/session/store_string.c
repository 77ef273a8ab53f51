// SPDX-License-Identifier: GPL-2.0
#include "session/store_string.h"

#include <glib.h>

/* How far behind a rep stos its stores are waited for. */
#define BEHIND_BYTES 64
#define BEHIND_INSTRUCTIONS 10
#define RAX 0
#define RCX 1
#define RDI 7
#define WAITING_MAX 64 /* instructions of a function that ends in waiting */

/* Bytes of a string instruction that stores or copies, 0: it is none. */
static size_t string_length(const struct code *code, size_t at)
{
	size_t prefixed = at + 1 < code->len && code->bytes[at + 1] == 0x48;
	uint8_t op = at + 1 + prefixed < code->len ? code->bytes[at + 1 + prefixed] : 0;

	if (code->bytes[at] != 0xf3)
		return 0;
	if (op == 0xab || op == 0xa5)
		return 2 + prefixed;
	return (op == 0xaa || op == 0xa4) && !prefixed ? 2 : 0;
}

static uint16_t string_width(const struct code *code, size_t at, size_t len)
{
	uint8_t op = code->bytes[at + len - 1];

	return op == 0xaa || op == 0xa4 ? 1 : len == 3 ? 8 : 4;
}

/* Bytes that a string instruction stores, where a number was moved to its counter; else 0. */
static uint32_t string_bytes(const struct code *code, size_t at, size_t len)
{
	struct instruction one;

	if (!code_set_before(code, at, ZYDIS_REGISTER_RCX, &one) ||
	    one.insn.mnemonic != ZYDIS_MNEMONIC_MOV ||
	    one.operands[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
	    one.operands[1].imm.value.u > UINT32_MAX / 8)
		return 0;
	return (uint32_t)one.operands[1].imm.value.u * string_width(code, at, len);
}

static void tell_string(const struct code *code, size_t at, size_t len, struct store_loop *loop)
{
	uint8_t op = code->bytes[at + len - 1];

	loop->kind = op == 0xaa || op == 0xab ? STORE_FILL : STORE_COPY;
	loop->head = at;
	loop->wire.flags = STORE_ADDRESS;
	loop->wire.base = RDI;
	loop->wire.words = 1;
	loop->length = string_bytes(code, at, len);
	loop->wire.flags |= STORE_LEFT | STORE_COUNTS_DOWN;
	loop->wire.counter = RCX;
	loop->wire.bytes_per_count = string_width(code, at, len);
	if (loop->kind != STORE_FILL)
		return;
	loop->wire.flags |= STORE_REGISTER;
	loop->wire.value = RAX;
	loop->wire.value_bits = len == 3 ? 64 : op == 0xab ? 32 : 8;
}

bool store_string_at(const struct code *code, size_t at, struct store_loop *loop)
{
	size_t len = string_length(code, at), behind;

	for (behind = 2; !len && behind <= MIN(3, at); behind++)
		if (string_length(code, at - behind) == behind) {
			at -= behind;
			len = behind;
		}
	if (len)
		tell_string(code, at, len, loop);
	return len != 0;
}

static bool is_clearing_string(const struct code *code, size_t at)
{
	size_t len = string_length(code, at);

	return len && (code->bytes[at + len - 1] & 0xfe) == 0xaa &&
	       code_clears_before(code, at, ZYDIS_REGISTER_RAX);
}

static bool reads_stack(const struct instruction *one)
{
	const ZydisDecodedOperand *memory = instruction_memory(one);

	return one->insn.meta.category == ZYDIS_CATEGORY_CALL ||
	       (memory && memory->actions & ZYDIS_OPERAND_ACTION_MASK_READ &&
		(memory->mem.base == ZYDIS_REGISTER_RSP || memory->mem.base == ZYDIS_REGISTER_RBP));
}

/* Whether a register is the same at both places, of which the first is an instruction's. */
static bool is_kept(const struct code *code, size_t from, size_t to, ZydisRegister reg)
{
	struct instruction one;

	while (from < to && code_decode(code, from, &one) && !instruction_writes(&one, reg))
		from += one.insn.length;
	return from == to;
}

/*
 * What a string instruction has stored ends where its pointer is, or as far as it stores from where
 * its pointer was taken from: the stack, of an array on it.
 */
static void tell_behind(const struct code *code, size_t from, size_t at, struct store_loop *loop)
{
	size_t len = string_length(code, from);
	const ZydisDecodedOperand *source;
	struct instruction one;
	ZydisRegister base;
	int64_t disp = 0;

	loop->length = string_bytes(code, from, len);
	loop->wire.words = 1;
	if (is_kept(code, from + len, at, ZYDIS_REGISTER_RDI)) {
		loop->wire.flags = STORE_ADDRESS;
		loop->wire.base = RDI;
		return;
	}
	if (!loop->length || !code_set_before(code, from, ZYDIS_REGISTER_RDI, &one))
		return;
	source = &one.operands[1];
	if (one.insn.mnemonic == ZYDIS_MNEMONIC_MOV &&
	    source->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		base = source->reg.value;
	} else if (one.insn.mnemonic == ZYDIS_MNEMONIC_LEA &&
		   source->mem.index == ZYDIS_REGISTER_NONE) {
		base = source->mem.base;
		disp = source->mem.disp.value;
	} else {
		return;
	}
	disp += loop->length;
	if (!register_is_general(base) || !is_kept(code, one.at + one.insn.length, at, base) ||
	    disp != (int32_t)disp)
		return;
	loop->wire.flags = STORE_ADDRESS;
	loop->wire.base = (uint8_t)(base - ZYDIS_REGISTER_RAX);
	loop->wire.disp = (int32_t)disp;
}

bool store_string_behind(const struct code *code, size_t at, struct store_loop *loop)
{
	struct instruction one;
	size_t from, next, count;

	for (from = at > BEHIND_BYTES ? at - BEHIND_BYTES : 0; from < at; from++) {
		if (!is_clearing_string(code, from))
			continue;
		next = from + string_length(code, from);
		for (count = 0; next < at && count < BEHIND_INSTRUCTIONS; count++) {
			if (!code_decode(code, next, &one) ||
			    one.insn.meta.category == ZYDIS_CATEGORY_RET ||
			    one.insn.meta.category == ZYDIS_CATEGORY_COND_BR ||
			    one.insn.meta.category == ZYDIS_CATEGORY_UNCOND_BR)
				break;
			next += one.insn.length;
		}
		if (next != at || !count || !reads_stack(&one))
			continue;
		loop->kind = STORE_FILL;
		loop->value = VALUE_ZERO;
		loop->head = from;
		tell_behind(code, from, at, loop);
		return true;
	}
	return false;
}

bool store_string_waits(const uint8_t *bytes, size_t len, size_t *stores, struct store_loop *loop)
{
	struct code code = { .bytes = bytes, .len = len };
	struct instruction one;
	bool clears = false;
	size_t at, count;

	if (!ZYAN_SUCCESS(ZydisDecoderInit(&code.decoder, ZYDIS_MACHINE_MODE_LONG_64,
					   ZYDIS_STACK_WIDTH_64)))
		return false;
	for (at = 0, count = 0; count < WAITING_MAX && code_decode(&code, at, &one); count++) {
		if (one.insn.meta.category == ZYDIS_CATEGORY_RET) {
			if (!clears)
				return false;
			loop->kind = STORE_FILL;
			loop->value = VALUE_ZERO;
			tell_behind(&code, *stores, at, loop);
			return true;
		}
		if (one.insn.meta.category == ZYDIS_CATEGORY_COND_BR ||
		    one.insn.meta.category == ZYDIS_CATEGORY_UNCOND_BR)
			return false;
		if (is_clearing_string(&code, at)) {
			clears = true;
			*stores = at;
		}
		at += one.insn.length;
	}
	return false;
}
