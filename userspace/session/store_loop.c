// SPDX-License-Identifier: GPL-2.0
/*
 * What is no plain loop is none: one that calls, computes with what it loads, or stores several
 * values is not called clearing or copying because it also does that.
 */
#include "session/store_loop.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "session/store_string.h"
#include "symbols/instruction.h"

#define INSTRUCTIONS_MAX 64 /* of a loop, or a row of stores */
#define ROW_STORES 4	    /* so many stores of one value, one beside the other, ... */
#define ROW_BYTES 32	    /* ... of so many bytes are a filling */
#define INSTRUCTIONS_PER_CYCLE 5

/* What one instruction does, as far as it matters here. */
enum deed {
	DEED_OTHER, /* anything that is no part of a plain loop */
	DEED_COUNT, /* moves a pointer or counter, compares, jumps */
	DEED_STORE, /* a plain move to memory */
	DEED_LOAD,  /* a plain move from memory */
	DEED_CLEAR, /* sets a register to 0, whatever it was */
	DEED_SPILL, /* a variable in memory is read or written */
};

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
		if (instruction_writes(&body->insns[i], reg))
			return true;
	return false;
}

/*
 * A variable in memory: at the same address in each turn. Unoptimised code keeps all of them on the
 * stack, other code what a store may have changed for all that the compiler knows.
 */
static bool is_variable(const struct body *body, const ZydisDecodedOperand *memory)
{
	ZydisRegister base = memory->mem.base, index = memory->mem.index;

	/* Each jump writes rip. */
	return (base == ZYDIS_REGISTER_NONE || base == ZYDIS_REGISTER_RIP ||
		!body_writes(body, base)) &&
	       (index == ZYDIS_REGISTER_NONE || !body_writes(body, index));
}

static enum deed deed_of(const struct body *body, const struct instruction *one)
{
	const ZydisDecodedOperand *memory = instruction_memory(one);
	ZydisInstructionCategory category = one->insn.meta.category;

	if (category == ZYDIS_CATEGORY_COND_BR || category == ZYDIS_CATEGORY_UNCOND_BR)
		return memory ? DEED_OTHER : DEED_COUNT;
	if (!memory)
		return instruction_clears(one)	       ? DEED_CLEAR :
		       is_counting(one->insn.mnemonic) ? DEED_COUNT :
							 DEED_OTHER;
	if (is_variable(body, memory))
		return is_plain_move(one->insn.mnemonic) || is_counting(one->insn.mnemonic) ?
			       DEED_SPILL :
			       DEED_OTHER;
	if (one->insn.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
				    ZYDIS_ATTRIB_HAS_REPNE | ZYDIS_ATTRIB_HAS_LOCK) ||
	    memory->mem.segment == ZYDIS_REGISTER_FS || memory->mem.segment == ZYDIS_REGISTER_GS)
		return DEED_OTHER;
	if (one->insn.mnemonic >= ZYDIS_MNEMONIC_PREFETCH &&
	    one->insn.mnemonic <= ZYDIS_MNEMONIC_PREFETCHWT1)
		return DEED_COUNT;
	if (!is_plain_move(one->insn.mnemonic))
		return DEED_OTHER;
	return memory->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? DEED_STORE : DEED_LOAD;
}

/* The turn of the innermost loop around a place: up to the first jump back over it. */
static bool find_turn(const struct code *code, size_t at, struct body *body)
{
	struct instruction one;
	size_t target = SIZE_MAX, next = at, turns;

	for (turns = 0; turns < INSTRUCTIONS_MAX && code_decode(code, next, &one); turns++) {
		next += one.insn.length;
		if (instruction_jumps(&one, &target) && target <= at)
			break;
		if (one.insn.meta.category == ZYDIS_CATEGORY_RET ||
		    one.insn.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
		    one.insn.meta.category == ZYDIS_CATEGORY_CALL)
			return false;
		target = SIZE_MAX;
	}
	if (turns == INSTRUCTIONS_MAX || target > at || !code_decode(code, target, &one))
		return false;
	body->count = 0;
	body->end = next;
	for (next = target; next < body->end && body->count < INSTRUCTIONS_MAX; body->count++) {
		if (!code_decode(code, next, &body->insns[body->count]))
			return false;
		next += body->insns[body->count].insn.length;
	}
	return next == body->end;
}

/* By how much a loop's turn moves a register. */
static bool step_of(const struct body *body, ZydisRegister reg, int64_t *step)
{
	int64_t by;
	size_t i;

	*step = 0;
	for (i = 0; i < body->count; i++) {
		const struct instruction *one = &body->insns[i];

		if (!instruction_writes(one, reg))
			continue;
		if (!instruction_steps(one, &by) ||
		    (one->insn.mnemonic == ZYDIS_MNEMONIC_LEA &&
		     register_whole(one->operands[1].mem.base) != reg))
			return false;
		*step += by;
	}
	return true;
}

/* Whether a turn stores to that variable, too. */
static bool variable_changes(const struct body *body, const ZydisDecodedOperand *variable)
{
	const ZydisDecodedOperand *memory;
	size_t i;

	for (i = 0; i < body->count; i++) {
		memory = body->deeds[i] == DEED_SPILL ? instruction_memory(&body->insns[i]) : NULL;
		if (memory && memory->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    memory->mem.base == variable->mem.base &&
		    memory->mem.index == variable->mem.index &&
		    memory->mem.disp.value == variable->mem.disp.value)
			return true;
	}
	return false;
}

/* A number that is multiplied by a power of 2: GCC makes an index of its vectors like that. */
static bool shifts(const struct instruction *one, unsigned int *by)
{
	const ZydisDecodedOperand *count = &one->operands[1];

	if (one->insn.mnemonic != ZYDIS_MNEMONIC_SHL || count->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	*by = (unsigned int)MIN(count->imm.value.u, 31);
	return true;
}

/*
 * The same for a register that is set anew in each turn: from another one, or from a variable that
 * stays as it is; and then shifted.
 */
static bool step_of_copy(const struct body *body, ZydisRegister reg, int64_t *step)
{
	const struct instruction *set = NULL;
	const ZydisDecodedOperand *from;
	unsigned int shift = 0, more;
	size_t i;

	for (i = 0; i < body->count; i++) {
		if (!instruction_writes(&body->insns[i], reg))
			continue;
		if (set && shifts(&body->insns[i], &more)) {
			shift = MIN(shift + more, 31);
			continue;
		}
		if (body->insns[i].insn.mnemonic != ZYDIS_MNEMONIC_MOV ||
		    (set && body->deeds[i] != DEED_SPILL))
			return false;
		set = &body->insns[i];
	}
	if (!set)
		return false;
	from = &set->operands[1];
	*step = 0;
	if (from->type == ZYDIS_OPERAND_TYPE_MEMORY)
		return is_variable(body, from) && !variable_changes(body, from);
	if (from->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    !step_of(body, register_whole(from->reg.value), step))
		return false;
	*step *= 1LL << shift;
	return true;
}

/* Whether an address is made of what the turn loads from where it goes: a list, an index. */
static bool is_loaded(const struct body *body, ZydisRegister reg)
{
	size_t i;

	for (i = 0; i < body->count; i++)
		if (body->deeds[i] == DEED_LOAD && instruction_writes(&body->insns[i], reg))
			return true;
	return false;
}

/* Whether something in a turn moves on by no more than so much: of addresses that are computed. */
static bool has_small_step(const struct body *body, int64_t most)
{
	int64_t step;
	size_t i;

	for (i = 0; i < body->count; i++)
		if ((body->deeds[i] == DEED_COUNT || body->deeds[i] == DEED_SPILL) &&
		    instruction_steps(&body->insns[i], &step) && step && ABS(step) <= most)
			return true;
	return false;
}

/*
 * Whether an address moves on by about what is stored at it in a turn: a program that writes one
 * word of each page touches memory, but does not fill it.
 */
static bool moves_on(const struct body *body, const ZydisDecodedOperand *memory, int64_t bytes,
		     int64_t *step)
{
	ZydisRegister base = memory->mem.base, index = memory->mem.index;
	int64_t by_base = 0, by_index = 0;
	bool known;

	known = (base == ZYDIS_REGISTER_NONE || step_of(body, base, &by_base) ||
		 step_of_copy(body, base, &by_base)) &&
		(index == ZYDIS_REGISTER_NONE || step_of(body, index, &by_index) ||
		 step_of_copy(body, index, &by_index));
	*step = by_base + by_index * (int64_t)(memory->mem.scale ? memory->mem.scale : 1);
	if (known)
		return *step && ABS(*step) <= 4 * bytes;
	*step = bytes;
	return !is_loaded(body, base) && !is_loaded(body, index) && has_small_step(body, 4 * bytes);
}

static int number_of(ZydisRegister reg)
{
	return register_is_general(reg) ? (int)(reg - ZYDIS_REGISTER_RAX) : -1;
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
	ZydisRegister reg = instruction_moves(store);
	bool cleared = false;
	size_t i;

	loop->value = VALUE_SAMPLED;
	if (from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		loop->value = from->imm.value.u ? VALUE_OTHER : VALUE_ZERO;
		return true;
	}
	if (!register_is_general(reg) && !register_is_vector(reg))
		return false;
	for (i = 0; i < body->count; i++) {
		if (!instruction_writes(&body->insns[i], reg))
			continue;
		if (body->deeds[i] != DEED_CLEAR)
			return false;
		cleared = true;
	}
	if (cleared)
		loop->value = VALUE_ZERO;
	else if (register_is_general(reg))
		tell_register(loop, reg, store->operands[0].size);
	else if (code_clears_before(code, body->insns[0].at, reg))
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
			     register_whole(same->reg.value) != register_whole(value->reg.value)))
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
		    !moves_on(body, instruction_memory(&body->insns[i]), bytes, &step))
			return false;
		if (body->deeds[i] != DEED_STORE)
			continue;
		for (k = 0; k < body->count; k++)
			if (instruction_writes(&body->insns[k],
					       instruction_moves(&body->insns[i]))) {
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
	const ZydisDecodedOperand *memory, *best = instruction_memory(first);
	const struct instruction *found = first;
	size_t i;

	for (i = 0; i < body->count; i++) {
		if (body->deeds[i] != DEED_STORE)
			continue;
		memory = instruction_memory(&body->insns[i]);
		if (memory->mem.base != best->mem.base || memory->mem.index != best->mem.index ||
		    (memory->mem.disp.value > best->mem.disp.value) != highest)
			continue;
		best = memory;
		found = &body->insns[i];
	}
	return found;
}

/* What a turn compares last before it jumps back: a counter with where that ends. */
static void tell_left(const struct body *body, int64_t bytes, struct memtoll_store_loop *wire)
{
	const ZydisDecodedOperand *operands;
	int64_t by_first = 0, by_second = 0, step;
	size_t i = body->count - 1;
	bool second;
	int counter, end;

	while (i > 0 && (body->insns[i - 1].insn.mnemonic == ZYDIS_MNEMONIC_LEA ||
			 body->insns[i - 1].insn.mnemonic == ZYDIS_MNEMONIC_MOV ||
			 instruction_memory(&body->insns[i - 1])))
		i--;
	if (!i--)
		return;
	operands = body->insns[i].operands;
	if (operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    !step_of(body, register_whole(operands[0].reg.value), &by_first))
		return;
	second = body->insns[i].insn.mnemonic == ZYDIS_MNEMONIC_CMP &&
		 operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
	if (second && !step_of(body, register_whole(operands[1].reg.value), &by_second))
		return;
	step = by_first + by_second;
	if (!step || (by_first && by_second) || bytes % ABS(step) || bytes / ABS(step) > UINT16_MAX)
		return;
	counter = number_of(register_whole(operands[by_first ? 0 : 1].reg.value));
	end = second ? number_of(register_whole(operands[by_first ? 1 : 0].reg.value)) : 0;
	if (counter < 0 || end < 0)
		return;
	if (second)
		wire->flags |= STORE_END;
	else if (body->insns[i].insn.mnemonic == ZYDIS_MNEMONIC_CMP)
		wire->end_at = (int32_t)operands[1].imm.value.s;
	else if (step > 0) /* up to where it overflows */
		return;
	wire->flags |= STORE_LEFT | (step < 0 ? STORE_COUNTS_DOWN : 0);
	wire->counter = (uint8_t)counter;
	wire->end = (uint8_t)end;
	wire->bytes_per_count = (uint16_t)(bytes / ABS(step));
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
	if (!first || !moves_on(&body, instruction_memory(first), bytes, &step))
		return;
	loop->head = body.insns[0].at;
	loop->end = body.end;
	cycles = MAX(MAX(1, stores), (body.count - 1) / INSTRUCTIONS_PER_CYCLE);
	loop->bytes_per_16_cycles = (uint32_t)(16 * bytes / (int64_t)cycles);
	loop->wire.words = (uint8_t)CLAMP(bytes / 8, 1, STORE_WORDS);
	if (step < 0)
		loop->wire.flags |= STORE_DOWN;
	/* What lies below the lowest address of a turn was stored in the one before. */
	outer = outermost(&body, first, step < 0);
	tell_address(&loop->wire, instruction_memory(outer),
		     step < 0 ? (int64_t)outer->operands[0].size / 8 : 0);
	if (loads ? is_copy(&body, bytes) : is_one_value(&body, first))
		loop->kind = loads ? STORE_COPY : STORE_FILL;
	if (loop->kind == STORE_FILL && !value_of(code, &body, first, loop))
		loop->kind = STORE_NONE;
	if (loop->kind != STORE_NONE)
		tell_left(&body, bytes, &loop->wire);
}

/* Part of a row: a store, or what moves its address on in between. */
static bool is_row(const struct body *body, const struct instruction *one)
{
	const ZydisDecodedOperand *memory = instruction_memory(one);

	if (!memory)
		return one->insn.mnemonic == ZYDIS_MNEMONIC_LEA ||
		       ((one->insn.mnemonic == ZYDIS_MNEMONIC_ADD ||
			 one->insn.mnemonic == ZYDIS_MNEMONIC_SUB) &&
			one->operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE);
	return is_plain_move(one->insn.mnemonic) &&
	       (memory->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
	       memory->mem.segment != ZYDIS_REGISTER_FS && body;
}

static bool same_base(const struct body *body, const struct instruction *one)
{
	size_t i;

	for (i = 0; i < body->count; i++)
		if (body->deeds[i] == DEED_STORE)
			return instruction_memory(&body->insns[i])->mem.base ==
			       instruction_memory(one)->mem.base;
	return true;
}

/* The row of stores that a place is in or right behind, by decoding from one start. */
static bool find_row(const struct code *code, size_t start, size_t at, struct body *body)
{
	struct instruction one;
	bool met = false;
	size_t next;

	body->count = 0;
	for (next = start;
	     next <= at + INSTRUCTION_BYTES * INSTRUCTIONS_MAX && code_decode(code, next, &one);
	     next += one.insn.length) {
		bool row = is_row(body, &one) && body->count < INSTRUCTIONS_MAX;

		met |= next == at;
		if (next > at && !met)
			return false;
		if (row && instruction_memory(&one) && !same_base(body, &one))
			row = false;
		if (!row && met)
			break;
		if (!row) {
			body->count = 0;
			/* It may begin another row, with another base. */
			if (!is_row(body, &one))
				continue;
		}
		body->deeds[body->count] = instruction_memory(&one) ? DEED_STORE : DEED_COUNT;
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
		} else if (store && instruction_writes(one, instruction_memory(store)->mem.base)) {
			moved += one->insn.mnemonic == ZYDIS_MNEMONIC_LEA ?
					 one->operands[1].mem.disp.value :
				 one->insn.mnemonic == ZYDIS_MNEMONIC_ADD ?
					 one->operands[1].imm.value.s :
					 -one->operands[1].imm.value.s;
		}
	}
	if (!store || instruction_memory(store)->mem.index != ZYDIS_REGISTER_NONE)
		return;
	loop->wire.words = (uint8_t)CLAMP(store->operands[0].size / 64, 1, STORE_WORDS);
	tell_address(&loop->wire, instruction_memory(store), store->operands[0].size / 8 - moved);
}

static void judge_row(const struct code *code, size_t at, struct store_loop *loop)
{
	const struct instruction *first = NULL;
	size_t start, i, stores = 0, bytes = 0;
	struct body body;

	for (start = 0; start < INSTRUCTION_BYTES && start < at; start++)
		if (find_row(code, start, at, &body))
			break;
	if (start == INSTRUCTION_BYTES || start >= at)
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
	loop->end = body.insns[body.count - 1].at + body.insns[body.count - 1].insn.length;
	if (!value_of(code, &body, first, loop))
		return;
	loop->kind = STORE_FILL;
	tell_row_address(&body, at, loop);
}

static bool begin_code(struct code *code, const uint8_t *bytes, size_t len)
{
	*code = (struct code){ .bytes = bytes, .len = len };
	return ZYAN_SUCCESS(ZydisDecoderInit(&code->decoder, ZYDIS_MACHINE_MODE_LONG_64,
					     ZYDIS_STACK_WIDTH_64));
}

size_t store_loop_next(const uint8_t *bytes, const struct store_loop *loop, size_t at)
{
	struct instruction one;
	struct code code;

	if (!begin_code(&code, bytes, loop->end) || !code_decode(&code, at, &one))
		return loop->end;
	return at + one.insn.length;
}

void store_loop_find(const uint8_t *bytes, size_t len, size_t at, struct store_loop *loop)
{
	struct code code;

	memset(loop, 0, sizeof(*loop));
	if (at >= len || !begin_code(&code, bytes, len) || store_string_at(&code, at, loop) ||
	    store_string_behind(&code, at, loop))
		return;
	judge_loop(&code, at, loop);
	if (loop->kind != STORE_NONE)
		return;
	memset(loop, 0, sizeof(*loop));
	judge_row(&code, at, loop);
	if (loop->kind == STORE_NONE)
		memset(loop, 0, sizeof(*loop));
}
