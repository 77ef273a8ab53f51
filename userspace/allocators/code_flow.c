// SPDX-License-Identifier: GPL-2.0
#include "allocators/code_flow.h"

#include <string.h>

#define EXTENT_MAX (16U << 10) /* _int_malloc has 4 KiB */
#define STEPS_MAX 1000000      /* instructions, of all functions: glibc's take a tenth */
#define FUNCTIONS_MAX 4096
#define RETURNS_DEPTH 6 /* malloc_printerr, __libc_message, abort, and what that calls */

#define CALCULATED (FLOW_SIZE | FLOW_PADDED)

static const struct flow_value other = { FLOW_OTHER, 0 };

bool flow_code_init(struct flow_code *code, const uint8_t *bytes, size_t len, uint64_t address)
{
	memset(code, 0, sizeof(*code));
	code->code.bytes = bytes;
	code->code.len = len;
	code->address = address;
	code->returns = g_hash_table_new(NULL, NULL);
	return ZYAN_SUCCESS(ZydisDecoderInit(&code->code.decoder, ZYDIS_MACHINE_MODE_LONG_64,
					     ZYDIS_STACK_WIDTH_64));
}

void flow_code_free(struct flow_code *code)
{
	g_hash_table_destroy(code->returns);
	code->returns = NULL;
}

static bool find_extent(const struct flow_code *code, uint64_t address, uint64_t *start,
			uint64_t *end)
{
	return code->extent(address, start, end, code->argument) && *start <= address &&
	       address < *end && *end - *start <= EXTENT_MAX && *start >= code->address &&
	       *end - code->address <= code->code.len;
}

/* Target of a direct call or jump, as an address. */
static bool branch_target(const struct flow_code *code, const struct instruction *one,
			  uint64_t *target)
{
	const ZydisDecodedOperand *operand = &one->operands[0];

	if (!one->insn.operand_count || operand->type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
	    !operand->imm.is_relative)
		return false;
	*target = code->address + one->at + one->insn.length + (uint64_t)operand->imm.value.s;
	return true;
}

/* Nothing is executed behind it. */
static bool is_end(const struct instruction *one)
{
	switch (one->insn.mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
		return true;
	default:
		return one->insn.meta.category == ZYDIS_CATEGORY_RET;
	}
}

static bool returns(struct flow_code *code, uint64_t address, unsigned int depth);

/* Walk what can be reached in [start, end): does one way lead out of it? */
static bool walk_returns(struct flow_code *code, uint64_t address, uint64_t start, uint64_t end,
			 unsigned int depth)
{
	g_autoptr(GArray) open = g_array_new(FALSE, FALSE, sizeof(uint64_t));
	g_autofree bool *seen = g_new0(bool, end - start);
	struct instruction one;
	uint64_t at = address, target;

	g_array_append_val(open, at);
	while (open->len) {
		at = g_array_index(open, uint64_t, open->len - 1);
		g_array_set_size(open, open->len - 1);
		while (at >= start && at < end && !seen[at - start]) {
			ZydisInstructionCategory category;

			seen[at - start] = true;
			if (!code_decode(&code->code, at - code->address, &one))
				return true;
			category = one.insn.meta.category;
			if (category == ZYDIS_CATEGORY_RET)
				return true;
			if (is_end(&one))
				break;
			at += one.insn.length;
			if (category == ZYDIS_CATEGORY_CALL && branch_target(code, &one, &target) &&
			    !returns(code, target, depth + 1))
				break;
			if (category != ZYDIS_CATEGORY_COND_BR &&
			    category != ZYDIS_CATEGORY_UNCOND_BR)
				continue;
			if (!branch_target(code, &one, &target))
				return true;
			if (target >= start && target < end)
				g_array_append_val(open, target);
			else if (returns(code, target, depth + 1))
				return true;
			if (category == ZYDIS_CATEGORY_UNCOND_BR)
				break;
		}
	}
	return false;
}

/* Whether a function may come back. What cannot be told does. */
static bool returns(struct flow_code *code, uint64_t address, unsigned int depth)
{
	gpointer key = GSIZE_TO_POINTER(address);
	uint64_t start, end;
	gpointer known;
	bool does;

	if (g_hash_table_lookup_extended(code->returns, key, NULL, &known))
		return GPOINTER_TO_INT(known);
	if (depth > RETURNS_DEPTH || g_hash_table_size(code->returns) > FUNCTIONS_MAX ||
	    !find_extent(code, address, &start, &end))
		return true;
	/* While it is being found out: a function that calls itself comes back by other ways. */
	g_hash_table_insert(code->returns, key, GINT_TO_POINTER(true));
	does = walk_returns(code, address, start, end, depth);
	g_hash_table_insert(code->returns, key, GINT_TO_POINTER(does));
	return does;
}

void flow_entry(struct flow_state *state)
{
	memset(state, 0, sizeof(*state));
	for (size_t i = 0; i < FLOW_REGISTERS; i++)
		state->registers[i] = other;
	for (size_t i = 0; i < FLOW_SLOTS; i++)
		state->slots[i] = other;
	state->registers[FLOW_RSP] = (struct flow_value){ FLOW_STACK, 0 };
	state->registers[FLOW_RBP].may = FLOW_FRAME;
}

#define HAS_ADDRESS (FLOW_DATA | FLOW_STACK)

static bool join_value(struct flow_value *into, const struct flow_value *from)
{
	uint32_t may = into->may | from->may;

	/* There is room for one address only. */
	if (!(into->may & HAS_ADDRESS))
		into->at = from->at;
	else if ((from->may & HAS_ADDRESS) &&
		 (((into->may ^ from->may) & HAS_ADDRESS) || into->at != from->at))
		may |= FLOW_OTHER;
	if (may == into->may)
		return false;
	into->may = may;
	return true;
}

static bool join(struct flow_state *into, const struct flow_state *from)
{
	bool changed = from->leaked && !into->leaked;

	into->leaked |= from->leaked;
	for (size_t i = 0; i < FLOW_REGISTERS; i++)
		changed |= join_value(&into->registers[i], &from->registers[i]);
	for (size_t i = 0; i < FLOW_SLOTS; i++)
		changed |= join_value(&into->slots[i], &from->slots[i]);
	return changed;
}

/* Number of a general register or a part of one, -1 for others. */
static int number_of(ZydisRegister reg)
{
	ZydisRegister whole = register_whole(reg);

	return register_is_general(whole) ? (int)(whole - ZYDIS_REGISTER_RAX) : -1;
}

/* The slot of an offset from the return address; -1: not one that is followed. */
static int slot_of(int64_t offset)
{
	return offset < 0 && offset % 8 == 0 && -offset / 8 <= FLOW_SLOTS ? (int)(-offset / 8 - 1) :
									    -1;
}

/* Whether an operand in memory is in the frame, and where; *known is false: somewhere there. */
static bool in_frame(const struct flow_state *state, const ZydisDecodedOperand *operand,
		     int64_t *offset, bool *known)
{
	int base = number_of(operand->mem.base);

	if (base < 0 || !(state->registers[base].may & FLOW_STACK))
		return false;
	*known = state->registers[base].may == FLOW_STACK &&
		 operand->mem.index == ZYDIS_REGISTER_NONE;
	*offset = state->registers[base].at + operand->mem.disp.value;
	return true;
}

/* A register that was saved is no variable, which others would write to. */
static void forget_slots(struct flow_state *state)
{
	for (size_t i = 0; i < FLOW_SLOTS; i++)
		if (state->slots[i].may != FLOW_FRAME)
			state->slots[i] = other;
}

static void write_memory(struct flow_state *state, const ZydisDecodedOperand *operand,
			 struct flow_value value)
{
	int64_t offset, bytes = operand->size / 8;
	bool known;

	if (!in_frame(state, operand, &offset, &known)) {
		state->leaked |= (value.may & FLOW_STACK) != 0;
		if (state->leaked)
			forget_slots(state);
		return;
	}
	if (!known) {
		forget_slots(state);
		return;
	}
	if (bytes == 8 && slot_of(offset) >= 0) {
		state->slots[slot_of(offset)] = value;
		return;
	}
	for (int i = 0; i < FLOW_SLOTS; i++)
		if (-8 * (i + 1) < offset + bytes && -8 * i > offset)
			state->slots[i] = other;
}

static struct flow_value read_memory(const struct flow_state *state,
				     const ZydisDecodedOperand *operand)
{
	int64_t offset;
	bool known;

	if (operand->size != 64)
		return other;
	if (!in_frame(state, operand, &offset, &known))
		return (struct flow_value){ FLOW_LOADED, 0 };
	return known && slot_of(offset) >= 0 ? state->slots[slot_of(offset)] : other;
}

/* A number that is calculated with the size is one of those that the size is padded to. */
static struct flow_value calculated(struct flow_value one, struct flow_value two)
{
	struct flow_value value = other;

	if ((one.may | two.may) & CALCULATED)
		value.may = FLOW_PADDED;
	else if (one.may == FLOW_NUMBER && two.may == FLOW_NUMBER)
		value.may = FLOW_NUMBER;
	return value;
}

static struct flow_value read_operand(const struct flow_state *state,
				      const ZydisDecodedOperand *operand)
{
	struct flow_value value = other;
	int reg;

	switch (operand->type) {
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		value.may = FLOW_NUMBER;
		return value;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		return read_memory(state, operand);
	case ZYDIS_OPERAND_TYPE_REGISTER:
		reg = number_of(operand->reg.value);
		if (reg < 0)
			return other;
		value = state->registers[reg];
		/* A part of it. */
		return operand->size == 64 ? value : calculated(value, value);
	default:
		return other;
	}
}

static void write_operand(struct flow_state *state, const ZydisDecodedOperand *operand,
			  struct flow_value value)
{
	int reg;

	if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		write_memory(state, operand, value);
		return;
	}
	reg = operand->type == ZYDIS_OPERAND_TYPE_REGISTER ? number_of(operand->reg.value) : -1;
	if (reg >= 0)
		state->registers[reg] = operand->size >= 32 ? value : other;
}

/* A value with a constant added. */
static struct flow_value moved(struct flow_value value, int64_t by)
{
	if (value.may == FLOW_STACK)
		value.at += by;
	else if (value.may == FLOW_BLOCK && by == -16)
		value.may = FLOW_CHUNK;
	else if (value.may == FLOW_CHUNK && by == 16)
		value.may = FLOW_BLOCK;
	else if (by)
		value = calculated(value, (struct flow_value){ FLOW_NUMBER, 0 });
	return value;
}

static struct flow_value address_of(const struct flow_code *code, const struct flow_state *state,
				    const struct instruction *one)
{
	const ZydisDecodedOperand *operand = &one->operands[1];
	int base = number_of(operand->mem.base), index = number_of(operand->mem.index);
	struct flow_value value = other;

	if (one->operands[0].size != 64)
		return base >= 0 ? calculated(state->registers[base], other) : other;
	if (operand->mem.base == ZYDIS_REGISTER_RIP) {
		uint64_t at = code->address + one->at + one->insn.length +
			      (uint64_t)operand->mem.disp.value;

		value.may = at >= code->data_start && at < code->data_end ? FLOW_DATA : FLOW_NUMBER;
		value.at = value.may == FLOW_DATA ? (int64_t)at : 0;
		return value;
	}
	if (index < 0)
		return base < 0 ? other : moved(state->registers[base], operand->mem.disp.value);
	return calculated(state->registers[index], base < 0 ? other : state->registers[base]);
}

static void step_stack(struct flow_state *state, int64_t by)
{
	state->registers[FLOW_RSP] = moved(state->registers[FLOW_RSP], by);
}

static struct flow_value *top_slot(struct flow_state *state)
{
	const struct flow_value *sp = &state->registers[FLOW_RSP];
	int slot = sp->may == FLOW_STACK ? slot_of(sp->at) : -1;

	return slot < 0 ? NULL : &state->slots[slot];
}

static void push(struct flow_state *state, struct flow_value value)
{
	struct flow_value *slot;

	step_stack(state, -8);
	slot = top_slot(state);
	if (slot)
		*slot = value;
}

static struct flow_value pop(struct flow_state *state)
{
	const struct flow_value *slot = top_slot(state);
	struct flow_value value = slot ? *slot : other;

	step_stack(state, 8);
	return value;
}

/* System V AMD64 ABI 3.2.1: what a function need not keep. */
static void call(struct flow_state *state)
{
	static const int8_t arguments[] = { 7, 6, 2, 1, 8, 9 };

	for (size_t i = 0; i < G_N_ELEMENTS(arguments); i++)
		state->leaked |= (state->registers[arguments[i]].may & FLOW_STACK) != 0;
	if (state->leaked)
		forget_slots(state);
	for (int reg = 0; reg < FLOW_REGISTERS; reg++)
		if (reg <= 2 || (reg >= 6 && reg <= 11))
			state->registers[reg] = other;
	state->registers[FLOW_RAX].may = FLOW_RETURNED;
}

static bool is_product(struct flow_value one, struct flow_value two)
{
	return (one.may | two.may) == (FLOW_COUNT | FLOW_ELEMENT) &&
	       (one.may == FLOW_COUNT || one.may == FLOW_ELEMENT);
}

/* Everything written is something else now; what is better known comes over it. */
static void forget_written(struct flow_state *state, const struct instruction *one)
{
	for (unsigned int i = 0; i < one->insn.operand_count; i++) {
		const ZydisDecodedOperand *operand = &one->operands[i];

		if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			write_operand(state, operand, other);
	}
}

static struct flow_value added(const struct flow_state *state, const struct instruction *one)
{
	struct flow_value first = read_operand(state, &one->operands[0]);
	int64_t step;

	if (one->operands[0].size == 64 && instruction_steps(one, &step))
		return moved(first, step);
	return calculated(first, read_operand(state, &one->operands[1]));
}

/* What the first operand has afterwards; false: as forget_written() says. */
static bool result(const struct flow_code *code, const struct flow_state *state,
		   const struct instruction *one, struct flow_value *value)
{
	const ZydisDecodedOperand *operands = one->operands;
	struct flow_value first = other, second = other;

	if (one->insn.operand_count_visible > 0)
		first = read_operand(state, &operands[0]);
	if (one->insn.operand_count_visible > 1)
		second = read_operand(state, &operands[1]);
	*value = other;
	if (instruction_clears(one)) {
		value->may = FLOW_NUMBER;
		return true;
	}
	switch (one->insn.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		*value = second;
		return true;
	case ZYDIS_MNEMONIC_LEA:
		*value = address_of(code, state, one);
		return true;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		*value = added(state, one);
		return true;
	case ZYDIS_MNEMONIC_IMUL:
		if (one->insn.operand_count_visible == 2 && operands[0].size == 64 &&
		    is_product(first, second))
			value->may = FLOW_SIZE;
		return one->insn.operand_count_visible > 1;
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
	case ZYDIS_MNEMONIC_NEG:
		*value = calculated(first, second);
		return true;
	default:
		break;
	}
	if (one->insn.meta.category == ZYDIS_CATEGORY_CMOV && operands[0].size == 64) {
		*value = first;
		join_value(value, &second);
		return true;
	}
	return false;
}

static void apply(const struct flow_code *code, const struct instruction *one,
		  struct flow_state *state)
{
	struct flow_value value;
	bool better;

	if (one->insn.meta.category == ZYDIS_CATEGORY_CALL) {
		call(state);
		return;
	}
	switch (one->insn.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		push(state, read_operand(state, &one->operands[0]));
		return;
	case ZYDIS_MNEMONIC_POP:
		value = pop(state);
		write_operand(state, &one->operands[0], value);
		return;
	case ZYDIS_MNEMONIC_LEAVE:
		state->registers[FLOW_RSP] = state->registers[FLOW_RBP];
		state->registers[FLOW_RBP] = pop(state);
		return;
	case ZYDIS_MNEMONIC_MUL:
		better = one->operands[0].size == 64 &&
			 is_product(state->registers[FLOW_RAX],
				    read_operand(state, &one->operands[0]));
		forget_written(state, one);
		if (better)
			state->registers[FLOW_RAX].may = FLOW_SIZE;
		return;
	default:
		break;
	}
	better = result(code, state, one, &value);
	forget_written(state, one);
	if (better && one->insn.operand_count_visible &&
	    (one->operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		write_operand(state, &one->operands[0], value);
	if (one->insn.meta.category == ZYDIS_CATEGORY_SYSCALL)
		state->registers[FLOW_RAX] = other;
}

size_t flow_next(const struct flow *flow, const struct instruction *one, uint64_t cut,
		 size_t next[2])
{
	const struct flow_code *code = flow->code;
	ZydisInstructionCategory category = one->insn.meta.category;
	uint64_t target = 0, behind = code->address + one->at + one->insn.length;
	bool direct = branch_target(code, one, &target);
	size_t count = 0;

	if (is_end(one))
		return 0;
	if (category == ZYDIS_CATEGORY_CALL && direct &&
	    ((cut && target == cut) || !returns(flow->code, target, 0)))
		return 0;
	if ((category == ZYDIS_CATEGORY_COND_BR || category == ZYDIS_CATEGORY_UNCOND_BR) &&
	    direct && target >= flow->start && target < flow->end)
		next[count++] = target - flow->start;
	if (category != ZYDIS_CATEGORY_UNCOND_BR && behind < flow->end)
		next[count++] = behind - flow->start;
	return count;
}

bool flow_leaves(const struct flow *flow, const struct instruction *one, uint64_t *target,
		 bool *is_call)
{
	ZydisInstructionCategory category = one->insn.meta.category;

	*is_call = category == ZYDIS_CATEGORY_CALL;
	if (!*is_call && category != ZYDIS_CATEGORY_COND_BR && category != ZYDIS_CATEGORY_UNCOND_BR)
		return false;
	return branch_target(flow->code, one, target) &&
	       (*is_call || *target < flow->start || *target >= flow->end);
}

const struct flow_value *flow_stored(const struct flow_state *state, const struct instruction *one)
{
	const ZydisDecodedOperand *operands = one->operands;
	int64_t offset;
	bool known;
	int reg;

	if (one->insn.mnemonic != ZYDIS_MNEMONIC_MOV || operands[0].size != 64 ||
	    operands[0].type != ZYDIS_OPERAND_TYPE_MEMORY ||
	    operands[1].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    in_frame(state, &operands[0], &offset, &known))
		return NULL;
	reg = number_of(operands[1].reg.value);
	return reg < 0 ? NULL : &state->registers[reg];
}

bool flow_depth(const struct flow_state *state, uint32_t *depth)
{
	const struct flow_value *sp = &state->registers[FLOW_RSP];

	*depth = (uint32_t)-sp->at;
	return sp->may == FLOW_STACK && sp->at <= 0 && sp->at >= -(int64_t)UINT16_MAX;
}

const struct flow_state *flow_at(const struct flow *flow, size_t offset, struct instruction *one)
{
	const struct flow_state *state = flow->states[offset];

	if (!state ||
	    !code_decode(&flow->code->code, flow->start + offset - flow->code->address, one))
		return NULL;
	return state;
}

/* Bring a state to an offset: true if something new comes there. */
static bool arrive(struct flow *flow, size_t offset, const struct flow_state *state)
{
	if (flow->states[offset])
		return join(flow->states[offset], state);
	flow->states[offset] = g_memdup2(state, sizeof(*state));
	return true;
}

bool flow_run(struct flow_code *code, uint64_t address, const struct flow_state *state,
	      uint64_t cut, struct flow *flow)
{
	g_autoptr(GArray) open = g_array_new(FALSE, FALSE, sizeof(size_t));
	size_t offset;

	*flow = (struct flow){ .code = code };
	if (!find_extent(code, address, &flow->start, &flow->end))
		return false;
	flow->states = g_new0(struct flow_state *, flow->end - flow->start);
	offset = address - flow->start;
	arrive(flow, offset, state);
	g_array_append_val(open, offset);
	while (open->len) {
		struct flow_state after;
		struct instruction one;
		size_t next[2], count;

		offset = g_array_index(open, size_t, open->len - 1);
		g_array_set_size(open, open->len - 1);
		if (code->steps++ > STEPS_MAX || !flow_at(flow, offset, &one)) {
			flow_free(flow);
			return false;
		}
		after = *flow->states[offset];
		apply(code, &one, &after);
		count = flow_next(flow, &one, cut, next);
		for (size_t i = 0; i < count; i++)
			if (arrive(flow, next[i], &after))
				g_array_append_val(open, next[i]);
	}
	return true;
}

void flow_free(struct flow *flow)
{
	if (!flow->states)
		return;
	for (size_t i = 0; i < flow->end - flow->start; i++)
		g_free(flow->states[i]);
	g_free(flow->states);
	flow->states = NULL;
}

bool flow_caller_rbp(const struct flow_state *state, int32_t *at)
{
	*at = 0;
	if (state->registers[FLOW_RBP].may == FLOW_FRAME)
		return true;
	for (int32_t i = 0; i < FLOW_SLOTS; i++) {
		if (state->slots[i].may != FLOW_FRAME)
			continue;
		*at = -8 * (i + 1);
		return true;
	}
	return false;
}
