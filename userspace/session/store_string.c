// SPDX-License-Identifier: GPL-2.0
#include "session/store_string.h"

#include <glib.h>

/* How far behind a rep stos its stores are waited for. */
#define BEHIND_BYTES 64
#define BEHIND_INSTRUCTIONS 10
#define RAX 0
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

static void tell_string(const struct code *code, size_t at, size_t len, struct store_loop *loop)
{
	uint8_t op = code->bytes[at + len - 1];

	loop->kind = op == 0xaa || op == 0xab ? STORE_FILL : STORE_COPY;
	loop->head = at;
	loop->wire.flags = STORE_ADDRESS;
	loop->wire.base = RDI;
	loop->wire.words = 1;
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
		return true;
	}
	return false;
}

bool store_string_waits(const uint8_t *bytes, size_t len, size_t *stores)
{
	struct code code = { .bytes = bytes, .len = len };
	struct instruction one;
	bool clears = false;
	size_t at, count;

	if (!ZYAN_SUCCESS(ZydisDecoderInit(&code.decoder, ZYDIS_MACHINE_MODE_LONG_64,
					   ZYDIS_STACK_WIDTH_64)))
		return false;
	for (at = 0, count = 0; count < WAITING_MAX && code_decode(&code, at, &one); count++) {
		if (one.insn.meta.category == ZYDIS_CATEGORY_RET)
			return clears;
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
