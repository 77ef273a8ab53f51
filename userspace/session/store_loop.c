// SPDX-License-Identifier: GPL-2.0
/*
 * What is no plain loop is none: one that calls, computes with what it loads, or stores several
 * values is not called clearing or copying because it also does that.
 */
#include "session/store_loop.h"

#include <Zydis/Zydis.h>

#include <glib.h>
#include <stdbool.h>
#include <string.h>

#define INSTRUCTIONS_MAX 64 /* of a loop, or a row of stores */
#define LONGEST 15	    /* bytes of an instruction */
#define ROW_STORES 4	    /* so many stores of one value, one beside the other, ... */
#define ROW_BYTES 32	    /* ... of so many bytes are a filling */
#define INSTRUCTIONS_PER_CYCLE 5
#define RAX 0
#define RDI 7

struct instruction {
	size_t at;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

/* What one instruction does, as far as it matters here. */
enum deed {
	DEED_OTHER,  /* anything that is no part of a plain loop */
	DEED_COUNT,  /* moves a pointer or counter, compares, jumps */
	DEED_STORE,  /* a plain move to memory */
	DEED_LOAD,   /* a plain move from memory */
	DEED_CLEAR,  /* sets a register to 0, whatever it was */
	DEED_SPILL,  /* a variable of unoptimised code, on the stack, is read or written */
};

struct code {
	ZydisDecoder decoder;
	const uint8_t *bytes;
	size_t len;
};

static bool decode(const struct code *code, size_t at, struct instruction *into)
{
	into->at = at;
	return at < code->len &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeFull(&code->decoder, code->bytes + at, code->len - at,
						   &into->insn, into->operands));
}

static ZydisRegister whole(ZydisRegister reg)
{
	ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return wide == ZYDIS_REGISTER_NONE ? reg : wide;
}

static bool is_general(ZydisRegister reg)
{
	return reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15;
}

static bool is_vector(ZydisRegister reg)
{
	return reg >= ZYDIS_REGISTER_ZMM0 && reg <= ZYDIS_REGISTER_ZMM31;
}

static bool writes(const struct instruction *one, ZydisRegister reg)
{
	unsigned int i;

	for (i = 0; i < one->insn.operand_count; i++)
		if (one->operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (one->operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    whole(one->operands[i].reg.value) == reg)
			return true;
	return false;
}

static bool is_move(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVNTI:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVD:
	case ZYDIS_MNEMONIC_MOVQ:
	case ZYDIS_MNEMONIC_MOVSS:
	case ZYDIS_MNEMONIC_MOVSD:
	case ZYDIS_MNEMONIC_MOVAPS:
	case ZYDIS_MNEMONIC_MOVAPD:
	case ZYDIS_MNEMONIC_MOVUPS:
	case ZYDIS_MNEMONIC_MOVUPD:
	case ZYDIS_MNEMONIC_MOVDQA:
	case ZYDIS_MNEMONIC_MOVDQU:
	case ZYDIS_MNEMONIC_LDDQU:
	case ZYDIS_MNEMONIC_MOVHPS:
	case ZYDIS_MNEMONIC_MOVLPS:
	case ZYDIS_MNEMONIC_MOVNTDQ:
	case ZYDIS_MNEMONIC_MOVNTDQA:
	case ZYDIS_MNEMONIC_MOVNTPS:
	case ZYDIS_MNEMONIC_MOVNTPD:
	case ZYDIS_MNEMONIC_VMOVD:
	case ZYDIS_MNEMONIC_VMOVQ:
	case ZYDIS_MNEMONIC_VMOVSS:
	case ZYDIS_MNEMONIC_VMOVSD:
	case ZYDIS_MNEMONIC_VMOVAPS:
	case ZYDIS_MNEMONIC_VMOVAPD:
	case ZYDIS_MNEMONIC_VMOVUPS:
	case ZYDIS_MNEMONIC_VMOVUPD:
	case ZYDIS_MNEMONIC_VMOVDQA:
	case ZYDIS_MNEMONIC_VMOVDQA32:
	case ZYDIS_MNEMONIC_VMOVDQA64:
	case ZYDIS_MNEMONIC_VMOVDQU:
	case ZYDIS_MNEMONIC_VMOVDQU8:
	case ZYDIS_MNEMONIC_VMOVDQU16:
	case ZYDIS_MNEMONIC_VMOVDQU32:
	case ZYDIS_MNEMONIC_VMOVDQU64:
	case ZYDIS_MNEMONIC_VLDDQU:
	case ZYDIS_MNEMONIC_VMOVNTDQ:
	case ZYDIS_MNEMONIC_VMOVNTDQA:
	case ZYDIS_MNEMONIC_VMOVNTPS:
	case ZYDIS_MNEMONIC_VMOVNTPD:
		return true;
	default:
		return false;
	}
}

static bool is_count(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_CDQE:
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
	case ZYDIS_MNEMONIC_LEA:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_ENDBR64:
	case ZYDIS_MNEMONIC_PREFETCHNTA:
	case ZYDIS_MNEMONIC_PREFETCHT0:
	case ZYDIS_MNEMONIC_PREFETCHT1:
	case ZYDIS_MNEMONIC_PREFETCHT2:
	case ZYDIS_MNEMONIC_PREFETCHW:
		return true;
	default:
		return false;
	}
}

/* xor, sub or pxor of a register with itself; and with 0. */
static bool is_clear(const struct instruction *one)
{
	const ZydisDecodedOperand *operands = one->operands;
	unsigned int first = 0;

	if (one->insn.operand_count_visible < 2 || operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	switch (one->insn.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		return operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && !operands[1].imm.value.u;
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_SUB:
		if (operands[0].size < 32)
			return false;
		break;
	case ZYDIS_MNEMONIC_PXOR:
	case ZYDIS_MNEMONIC_XORPS:
	case ZYDIS_MNEMONIC_XORPD:
		break;
	case ZYDIS_MNEMONIC_VPXOR:
	case ZYDIS_MNEMONIC_VPXORD:
	case ZYDIS_MNEMONIC_VPXORQ:
	case ZYDIS_MNEMONIC_VXORPS:
	case ZYDIS_MNEMONIC_VXORPD:
		/* Behind the destination AVX-512 has a mask. */
		first = one->insn.operand_count_visible - 2;
		break;
	default:
		return false;
	}
	return operands[first].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       operands[first + 1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       operands[first].reg.value == operands[first + 1].reg.value;
}

/* The operand in memory, if the instruction reads or writes one. */
static const ZydisDecodedOperand *memory_of(const struct instruction *one)
{
	unsigned int i;

	for (i = 0; i < one->insn.operand_count; i++)
		if (one->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    one->operands[i].mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
		    one->insn.mnemonic != ZYDIS_MNEMONIC_NOP)
			return &one->operands[i];
	return NULL;
}

/* The register that a move to memory stores or one from memory fills; ZYDIS_REGISTER_NONE: none. */
static ZydisRegister moved_register(const struct instruction *one)
{
	unsigned int i;

	for (i = 0; i < one->insn.operand_count_visible; i++)
		if (one->operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    !(one->operands[i].reg.value >= ZYDIS_REGISTER_K0 &&
		      one->operands[i].reg.value <= ZYDIS_REGISTER_K7))
			return whole(one->operands[i].reg.value);
	return ZYDIS_REGISTER_NONE;
}

/* Instructions in a row: a loop's turn. */
struct body {
	struct instruction insns[INSTRUCTIONS_MAX];
	enum deed deeds[INSTRUCTIONS_MAX];
	size_t count;
	size_t end; /* offset behind the last */
};

static bool body_writes(const struct body *body, ZydisRegister reg)
{
	size_t i;

	for (i = 0; i < body->count; i++)
		if (writes(&body->insns[i], reg))
			return true;
	return false;
}

/* Where unoptimised code keeps its variables: at a fixed place of the stack. */
static bool is_variable(const struct body *body, const ZydisDecodedOperand *memory)
{
	ZydisRegister base = memory->mem.base;

	return memory->mem.index == ZYDIS_REGISTER_NONE &&
	       (base == ZYDIS_REGISTER_RSP || base == ZYDIS_REGISTER_RBP) &&
	       !body_writes(body, base);
}

static enum deed deed_of(const struct body *body, const struct instruction *one)
{
	const ZydisDecodedOperand *memory = memory_of(one);
	ZydisInstructionCategory category = one->insn.meta.category;

	if (category == ZYDIS_CATEGORY_COND_BR || category == ZYDIS_CATEGORY_UNCOND_BR)
		return memory ? DEED_OTHER : DEED_COUNT;
	if (!memory)
		return is_clear(one)			? DEED_CLEAR :
		       is_count(one->insn.mnemonic)	? DEED_COUNT :
							  DEED_OTHER;
	if (is_variable(body, memory))
		return is_move(one->insn.mnemonic) || is_count(one->insn.mnemonic) ? DEED_SPILL :
										     DEED_OTHER;
	if (one->insn.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
				    ZYDIS_ATTRIB_HAS_REPNE | ZYDIS_ATTRIB_HAS_LOCK) ||
	    memory->mem.segment == ZYDIS_REGISTER_FS || memory->mem.segment == ZYDIS_REGISTER_GS)
		return DEED_OTHER;
	if (one->insn.mnemonic >= ZYDIS_MNEMONIC_PREFETCH &&
	    one->insn.mnemonic <= ZYDIS_MNEMONIC_PREFETCHWT1)
		return DEED_COUNT;
	if (!is_move(one->insn.mnemonic))
		return DEED_OTHER;
	return memory->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? DEED_STORE : DEED_LOAD;
}

static bool jump_target(const struct instruction *one, size_t *target)
{
	const ZydisDecodedOperand *operand = &one->operands[0];
	ZydisInstructionCategory category = one->insn.meta.category;
	int64_t to;

	if ((category != ZYDIS_CATEGORY_COND_BR && category != ZYDIS_CATEGORY_UNCOND_BR) ||
	    operand->type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !operand->imm.is_relative)
		return false;
	to = (int64_t)one->at + one->insn.length + operand->imm.value.s;
	*target = to < 0 ? SIZE_MAX : (size_t)to;
	return to >= 0;
}

/* The turn of the innermost loop around a place: up to the first jump back over it. */
static bool find_turn(const struct code *code, size_t at, struct body *body)
{
	struct instruction one;
	size_t target, next = at, turns;

	for (turns = 0; turns < INSTRUCTIONS_MAX && decode(code, next, &one); turns++) {
		next += one.insn.length;
		if (jump_target(&one, &target) && target <= at)
			break;
		if (one.insn.meta.category == ZYDIS_CATEGORY_RET ||
		    one.insn.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
		    one.insn.meta.category == ZYDIS_CATEGORY_CALL)
			return false;
		target = SIZE_MAX;
	}
	if (turns == INSTRUCTIONS_MAX || target > at || !decode(code, target, &one))
		return false;
	body->count = 0;
	body->end = next;
	for (next = target; next < body->end && body->count < INSTRUCTIONS_MAX; body->count++) {
		if (!decode(code, next, &body->insns[body->count]))
			return false;
		next += body->insns[body->count].insn.length;
	}
	return next == body->end;
}

/*
 * The last instruction before a place, in the order of addresses, that sets a register: is it one
 * that clears it? Decoding from anywhere falls in step with the code; what is nearest counts, and
 * a call or the end of a function lets nothing through.
 */
static bool cleared_before(const struct code *code, size_t place, ZydisRegister reg)
{
	struct instruction one;
	size_t start, at;
	bool clear = false;

	for (start = 0; start < LONGEST && start < place; start++) {
		clear = false;
		for (at = start; at < place && decode(code, at, &one); at += one.insn.length) {
			if (one.insn.meta.category == ZYDIS_CATEGORY_RET ||
			    one.insn.meta.category == ZYDIS_CATEGORY_CALL)
				clear = false;
			else if (writes(&one, reg))
				clear = is_clear(&one);
		}
		if (at == place)
			return clear;
	}
	return false;
}

/* By how much a loop's turn moves a register; false: by something else than a number. */
static bool step_of(const struct body *body, ZydisRegister reg, int64_t *step)
{
	size_t i;

	*step = 0;
	for (i = 0; i < body->count; i++) {
		const struct instruction *one = &body->insns[i];
		const ZydisDecodedOperand *from = &one->operands[1];

		if (!writes(one, reg))
			continue;
		if (one->insn.mnemonic == ZYDIS_MNEMONIC_INC)
			*step += 1;
		else if (one->insn.mnemonic == ZYDIS_MNEMONIC_DEC)
			*step -= 1;
		else if (one->insn.mnemonic == ZYDIS_MNEMONIC_LEA &&
			 whole(from->mem.base) == reg &&
			 from->mem.index == ZYDIS_REGISTER_NONE)
			*step += from->mem.disp.value;
		else if ((one->insn.mnemonic == ZYDIS_MNEMONIC_ADD ||
			  one->insn.mnemonic == ZYDIS_MNEMONIC_SUB) &&
			 from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			*step += one->insn.mnemonic == ZYDIS_MNEMONIC_ADD ? from->imm.value.s :
									   -from->imm.value.s;
		else
			return false;
	}
	return true;
}

/* Copied from another register within the turn, or read from a variable: the address follows it. */
static bool follows(const struct body *body, ZydisRegister reg, ZydisRegister *leader,
		    bool *variable)
{
	size_t i, found = body->count;

	for (i = 0; i < body->count; i++) {
		if (!writes(&body->insns[i], reg))
			continue;
		if (found < body->count)
			return *variable;
		found = i;
		*variable = body->deeds[i] == DEED_SPILL;
	}
	if (found == body->count)
		return false;
	if (*variable)
		return true;
	if (body->insns[found].insn.mnemonic != ZYDIS_MNEMONIC_MOV ||
	    body->insns[found].operands[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	*leader = whole(body->insns[found].operands[1].reg.value);
	return true;
}

/*
 * Whether an address moves on by about what is stored at it in a turn: a program that writes one
 * word of each page touches memory, but does not fill it. In unoptimised code that is not asked.
 */
static bool moves_on(const struct body *body, const ZydisDecodedOperand *memory, int64_t bytes,
		     int64_t *step)
{
	ZydisRegister base = memory->mem.base, index = memory->mem.index, leader = base;
	int64_t by_base = 0, by_index = 0;
	bool variable = false;

	*step = 0;
	if (memory->mem.disp.has_displacement && base == ZYDIS_REGISTER_RIP)
		return false;
	if (base != ZYDIS_REGISTER_NONE && !step_of(body, base, &by_base)) {
		if (!follows(body, base, &leader, &variable))
			return false;
		if (!variable && !step_of(body, leader, &by_base))
			return false;
	}
	if (index != ZYDIS_REGISTER_NONE && !step_of(body, index, &by_index)) {
		if (!follows(body, index, &leader, &variable) || !variable)
			return false;
	}
	if (variable)
		return true;
	*step = by_base + by_index * (int64_t)(memory->mem.scale ? memory->mem.scale : 1);
	return *step && ABS(*step) <= 4 * bytes;
}

static int number_of(ZydisRegister reg)
{
	return is_general(reg) ? (int)(reg - ZYDIS_REGISTER_RAX) : -1;
}

/* Where a store goes, for the BPF side; after: how many bytes on. */
static void tell_address(struct memtoll_store_loop *wire, const ZydisDecodedOperand *memory,
			 int64_t after)
{
	int base = number_of(memory->mem.base), index = number_of(memory->mem.index);
	int64_t disp = memory->mem.disp.value + after;

	if (base < 0 || (index < 0 && memory->mem.index != ZYDIS_REGISTER_NONE) ||
	    disp != (int32_t)disp)
		return;
	wire->flags |= STORE_ADDRESS;
	wire->base = (uint8_t)base;
	wire->disp = (int32_t)disp;
	if (index < 0)
		return;
	wire->flags |= STORE_INDEX;
	wire->index = (uint8_t)index;
	wire->shift = (uint8_t)__builtin_ctz(memory->mem.scale);
}

static void tell_register(struct store_loop *loop, ZydisRegister reg, uint32_t bits)
{
	loop->wire.flags |= STORE_REGISTER;
	loop->wire.value = (uint8_t)number_of(reg);
	loop->wire.value_bits = (uint8_t)MIN(bits, 64);
}

/* What a store stores, if it is the same in each turn. false: it is not. */
static bool value_of(const struct code *code, const struct body *body,
		     const struct instruction *store, struct store_loop *loop)
{
	const ZydisDecodedOperand *from = &store->operands[store->insn.operand_count_visible - 1];
	ZydisRegister reg = moved_register(store);
	bool cleared = false;
	size_t i;

	loop->value = VALUE_SAMPLED;
	if (from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		loop->value = from->imm.value.u ? VALUE_OTHER : VALUE_ZERO;
		return true;
	}
	if (!is_general(reg) && !is_vector(reg))
		return false;
	for (i = 0; i < body->count; i++) {
		if (!writes(&body->insns[i], reg))
			continue;
		if (body->deeds[i] != DEED_CLEAR)
			return false;
		cleared = true;
	}
	if (cleared)
		loop->value = VALUE_ZERO;
	else if (is_general(reg))
		tell_register(loop, reg, store->operands[0].size);
	else if (cleared_before(code, body->insns[0].at, reg))
		loop->value = VALUE_ZERO;
	return true;
}

/* All stores of a turn, and of one value: the register, or ZYDIS_REGISTER_NONE for a number. */
static bool is_one_value(const struct body *body, const struct instruction *first)
{
	const ZydisDecodedOperand *value, *same;
	size_t i;

	value = &first->operands[first->insn.operand_count_visible - 1];
	for (i = 0; i < body->count; i++) {
		if (body->deeds[i] != DEED_STORE)
			continue;
		same = &body->insns[i].operands[body->insns[i].insn.operand_count_visible - 1];
		if (same->type != value->type ||
		    (value->type == ZYDIS_OPERAND_TYPE_IMMEDIATE ?
			     !same->imm.value.u != !value->imm.value.u :
			     whole(same->reg.value) != whole(value->reg.value)))
			return false;
	}
	return true;
}

/* Each stored register was loaded in the same turn, from an address that no load has made. */
static bool is_copy(const struct body *body, int64_t bytes)
{
	size_t i, k;
	int64_t step;

	for (i = 0; i < body->count; i++) {
		bool loaded = false;

		if (body->deeds[i] == DEED_LOAD &&
		    !moves_on(body, memory_of(&body->insns[i]), bytes, &step))
			return false;
		if (body->deeds[i] != DEED_STORE)
			continue;
		for (k = 0; k < body->count; k++)
			if (writes(&body->insns[k], moved_register(&body->insns[i]))) {
				loaded = body->deeds[k] == DEED_LOAD;
				if (!loaded)
					return false;
			}
		if (!loaded)
			return false;
	}
	return true;
}

/* Of a turn's stores by the same registers the one that lies lowest, or highest. */
static const struct instruction *outermost(const struct body *body, const struct instruction *first,
					   bool highest)
{
	const ZydisDecodedOperand *memory, *best = memory_of(first);
	const struct instruction *found = first;
	size_t i;

	for (i = 0; i < body->count; i++) {
		if (body->deeds[i] != DEED_STORE)
			continue;
		memory = memory_of(&body->insns[i]);
		if (memory->mem.base != best->mem.base || memory->mem.index != best->mem.index ||
		    (memory->mem.disp.value > best->mem.disp.value) != highest)
			continue;
		best = memory;
		found = &body->insns[i];
	}
	return found;
}

static void judge_loop(const struct code *code, size_t at, struct store_loop *loop)
{
	const struct instruction *first = NULL, *last = NULL, *outer;
	size_t i, loads = 0, stores = 0, cycles;
	int64_t bytes = 0, step;
	struct body body;

	if (!find_turn(code, at, &body))
		return;
	for (i = 0; i < body.count; i++) {
		body.deeds[i] = deed_of(&body, &body.insns[i]);
		loads += body.deeds[i] == DEED_LOAD;
		if (body.deeds[i] == DEED_OTHER)
			return;
		if (body.deeds[i] != DEED_STORE)
			continue;
		first = first ? first : &body.insns[i];
		last = &body.insns[i];
		bytes += last->operands[0].size / 8;
		stores++;
	}
	if (!first || !moves_on(&body, memory_of(first), bytes, &step))
		return;
	loop->head = body.insns[0].at;
	cycles = MAX(MAX(1, stores), (body.count - 1) / INSTRUCTIONS_PER_CYCLE);
	loop->bytes_per_16_cycles = (uint32_t)(16 * bytes / (int64_t)cycles);
	loop->wire.words = (uint8_t)CLAMP(bytes / 8, 1, STORE_WORDS);
	if (step < 0)
		loop->wire.flags |= STORE_DOWN;
	/* What lies below the lowest address of a turn was stored in the one before. */
	outer = outermost(&body, first, step < 0);
	tell_address(&loop->wire, memory_of(outer),
		     step < 0 ? (int64_t)outer->operands[0].size / 8 : 0);
	if (loads ? is_copy(&body, bytes) : is_one_value(&body, first))
		loop->kind = loads ? STORE_COPY : STORE_FILL;
	if (loop->kind == STORE_FILL && !value_of(code, &body, first, loop))
		loop->kind = STORE_NONE;
}

/* rep stos, rep movs: at the place, or just done. */
static bool judge_string(const struct code *code, size_t at, struct store_loop *loop)
{
	static const struct {
		uint8_t bytes[3];
		size_t len;
	} forms[] = {
		{ { 0xf3, 0x48, 0xab }, 3 }, { { 0xf3, 0xab }, 2 }, { { 0xf3, 0xaa }, 2 },
		{ { 0xf3, 0x48, 0xa5 }, 3 }, { { 0xf3, 0xa5 }, 2 }, { { 0xf3, 0xa4 }, 2 },
	};
	size_t i, behind;

	for (behind = 0; behind < 2; behind++)
		for (i = 0; i < G_N_ELEMENTS(forms); i++) {
			size_t len = forms[i].len, from = at - (behind ? len : 0);

			if (at < (behind ? len : 0) || from + len > code->len ||
			    memcmp(code->bytes + from, forms[i].bytes, len))
				continue;
			loop->kind = (forms[i].bytes[len - 1] & 0xe) == 0xa ? STORE_FILL :
									       STORE_COPY;
			loop->head = from;
			loop->wire = (struct memtoll_store_loop){
				.flags = STORE_ADDRESS,
				.base = RDI,
				.words = 1,
			};
			if (loop->kind == STORE_FILL) {
				loop->wire.flags |= STORE_REGISTER;
				loop->wire.value = RAX;
				loop->wire.value_bits = len == 3			? 64 :
							forms[i].bytes[len - 1] == 0xab ? 32 :
											  8;
			}
			return true;
		}
	return false;
}

/* Part of a row: a store, or what moves its address on in between. */
static bool is_row(const struct body *body, const struct instruction *one)
{
	const ZydisDecodedOperand *memory = memory_of(one);

	if (!memory)
		return one->insn.mnemonic == ZYDIS_MNEMONIC_LEA ||
		       ((one->insn.mnemonic == ZYDIS_MNEMONIC_ADD ||
			 one->insn.mnemonic == ZYDIS_MNEMONIC_SUB) &&
			one->operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE);
	return is_move(one->insn.mnemonic) && (memory->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
	       memory->mem.segment != ZYDIS_REGISTER_FS && body;
}

static bool same_base(const struct body *body, const struct instruction *one)
{
	size_t i;

	for (i = 0; i < body->count; i++)
		if (body->deeds[i] == DEED_STORE)
			return memory_of(&body->insns[i])->mem.base == memory_of(one)->mem.base;
	return true;
}

/* The row of stores that a place is in or right behind, by decoding from one start. */
static bool find_row(const struct code *code, size_t start, size_t at, struct body *body)
{
	struct instruction one;
	bool met = false;
	size_t next;

	body->count = 0;
	for (next = start; next <= at + LONGEST * INSTRUCTIONS_MAX && decode(code, next, &one);
	     next += one.insn.length) {
		bool row = is_row(body, &one) && body->count < INSTRUCTIONS_MAX;

		met |= next == at;
		if (next > at && !met)
			return false;
		if (row && memory_of(&one) && !same_base(body, &one))
			row = false;
		if (!row && met)
			break;
		if (!row) {
			body->count = 0;
			/* It may begin another row, with another base. */
			if (!is_row(body, &one))
				continue;
		}
		body->deeds[body->count] = memory_of(&one) ? DEED_STORE : DEED_COUNT;
		body->insns[body->count++] = one;
	}
	return met && body->count;
}

/* Where the last store before a place went, for what lies behind it by now to be looked at. */
static void tell_row_address(const struct body *body, size_t at, struct store_loop *loop)
{
	const struct instruction *store = NULL;
	int64_t moved = 0;
	size_t i;

	for (i = 0; i < body->count && body->insns[i].at < at; i++) {
		const struct instruction *one = &body->insns[i];

		if (body->deeds[i] == DEED_STORE) {
			store = one;
			moved = 0;
		} else if (store && writes(one, memory_of(store)->mem.base)) {
			moved += one->insn.mnemonic == ZYDIS_MNEMONIC_LEA ?
					 one->operands[1].mem.disp.value :
				 one->insn.mnemonic == ZYDIS_MNEMONIC_ADD ?
					 one->operands[1].imm.value.s :
					 -one->operands[1].imm.value.s;
		}
	}
	if (!store || memory_of(store)->mem.index != ZYDIS_REGISTER_NONE)
		return;
	loop->wire.words = (uint8_t)CLAMP(store->operands[0].size / 64, 1, STORE_WORDS);
	tell_address(&loop->wire, memory_of(store), store->operands[0].size / 8 - moved);
}

static void judge_row(const struct code *code, size_t at, struct store_loop *loop)
{
	const struct instruction *first = NULL;
	size_t start, i, stores = 0, bytes = 0;
	struct body body;

	for (start = 0; start < LONGEST && start < at; start++)
		if (find_row(code, start, at, &body))
			break;
	if (start == LONGEST || start >= at)
		return;
	for (i = 0; i < body.count; i++) {
		if (body.deeds[i] != DEED_STORE)
			continue;
		first = first ? first : &body.insns[i];
		bytes += body.insns[i].operands[0].size / 8;
		stores++;
	}
	if (stores < ROW_STORES || bytes < ROW_BYTES || !is_one_value(&body, first))
		return;
	loop->head = body.insns[0].at;
	if (!value_of(code, &body, first, loop))
		return;
	loop->kind = STORE_FILL;
	tell_row_address(&body, at, loop);
}

void store_loop_find(const uint8_t *bytes, size_t len, size_t at, struct store_loop *loop)
{
	struct code code = { .bytes = bytes, .len = len };

	memset(loop, 0, sizeof(*loop));
	if (at >= len ||
	    !ZYAN_SUCCESS(ZydisDecoderInit(&code.decoder, ZYDIS_MACHINE_MODE_LONG_64,
					   ZYDIS_STACK_WIDTH_64)) ||
	    judge_string(&code, at, loop))
		return;
	judge_loop(&code, at, loop);
	if (loop->kind != STORE_NONE)
		return;
	memset(loop, 0, sizeof(*loop));
	judge_row(&code, at, loop);
	if (loop->kind == STORE_NONE)
		memset(loop, 0, sizeof(*loop));
}
