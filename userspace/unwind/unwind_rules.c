// SPDX-License-Identifier: GPL-2.0
/*
 * An interpreter of call frame instructions that keeps only what bpf/stacks/unwind.bpf.c can use.
 * libdw's dwarf_cfi_addrframe() would run a function's program from its start for every address
 * (minutes for a hostile function of 1 MiB) and keep a copy of all registers for each
 * DW_CFA_remember_state; the tests compare with it.
 */
#include <dwarf.h>
#include <string.h>

#include "unwind/unwind_rules.h"

/* DWARF numbers of the registers: System V ABI for x86-64, figure 3.36. */
#define REGISTER_RBP 6
#define REGISTER_RSP 7
#define REGISTER_IP 16

/* Compilers nest 2 at most. */
#define REMEMBERED_MAX 32

/* struct ucontext of the kernel on x86-64 (uapi/asm/sigcontext.h): its rbp, rsp and rip. */
#define UCONTEXT_RBP 120
#define UCONTEXT_RSP 160
#define UCONTEXT_IP 168

struct interpreter {
	struct unwind_program program;
	const struct unwind_start *start;
	struct unwind_rules rules;
	struct unwind_rules remembered[REMEMBERED_MAX];
	unsigned int remembered_count;
	uint64_t function;
	uint64_t offset; /* from the function's start */
};

static size_t left(const struct unwind_program *program)
{
	return (size_t)(program->end - program->at);
}

static bool take(struct unwind_program *program, void *value, size_t size)
{
	if (left(program) < size)
		return false;
	memcpy(value, program->at, size);
	program->at += size;
	program->address += size;
	return true;
}

bool unwind_uleb_read(struct unwind_program *program, uint64_t *value)
{
	uint8_t byte;

	*value = 0;
	for (unsigned int shift = 0; shift < 64; shift += 7) {
		if (!take(program, &byte, 1))
			return false;
		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static bool sleb_read(struct unwind_program *program, int64_t *value)
{
	uint64_t bits = 0;
	uint8_t byte;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		if (!take(program, &byte, 1))
			return false;
		bits |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if ((byte & 0x40) && shift + 7 < 64)
			bits |= ~0ull << (shift + 7);
		*value = (int64_t)bits;
		return true;
	}
	return false;
}

bool unwind_pointer_read(struct unwind_program *program, uint8_t encoding, uint64_t *value)
{
	static const uint8_t sizes[8] = { 8, 0, 2, 4, 8, 0, 0, 0 };
	uint64_t address = program->address;
	size_t size = sizes[encoding & 0x07];

	/* DW_EH_PE_signed alone is a signed pointer. */
	if (size == 0 || (encoding & DW_EH_PE_indirect))
		return false;
	*value = 0;
	if (!take(program, value, size))
		return false;
	if ((encoding & DW_EH_PE_signed) && size < 8 && (*value >> (size * 8 - 1)))
		*value |= ~0ull << (size * 8);
	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		*value += address;
	return (encoding & 0x70) == DW_EH_PE_pcrel || (encoding & 0x70) == DW_EH_PE_absptr;
}

/* A factored offset: in units of the data alignment factor. */
static bool scale(const struct unwind_start *start, int64_t factored, int64_t *offset)
{
	return !__builtin_mul_overflow(factored, start->data_factor, offset);
}

static bool take_factored(struct interpreter *state, bool is_signed, int64_t *offset)
{
	uint64_t unsigned_value;
	int64_t value;

	if (is_signed)
		return sleb_read(&state->program, &value) && scale(state->start, value, offset);
	return unwind_uleb_read(&state->program, &unsigned_value) && unsigned_value <= INT64_MAX &&
	       scale(state->start, (int64_t)unsigned_value, offset);
}

static struct saved_value *rule_of(struct unwind_rules *rules, uint64_t number)
{
	switch (number) {
	case REGISTER_RBP:
		return &rules->rbp;
	case REGISTER_RSP:
		return &rules->rsp;
	case REGISTER_IP:
		return &rules->ip;
	default:
		return NULL;
	}
}

static void set_rule(struct interpreter *state, uint64_t number, int kind, int64_t offset)
{
	struct saved_value *value = rule_of(&state->rules, number);

	if (value) {
		value->kind = kind;
		value->offset = offset;
	}
}

static void restore_rule(struct interpreter *state, uint64_t number)
{
	struct unwind_rules initial = state->start->rules;
	const struct saved_value *value = rule_of(&initial, number);

	if (value)
		set_rule(state, number, value->kind, value->offset);
}

static void set_cfa_register(struct unwind_rules *rules, uint64_t number)
{
	rules->cfa = number == REGISTER_RSP ? CFA_RSP : number == REGISTER_RBP ? CFA_RBP : CFA_STOP;
}

/*
 * The expression that linkers write for a .plt: its entries of 16 bytes push 8 bytes, done from a
 * certain byte on: 11, or 9 or 10 in entries that begin with endbr64. The rule has that byte where
 * other rules have an offset in units of 8.
 */
static bool is_plt(const struct unwind_program *rest, int64_t *offset)
{
	static const uint8_t before[] = { DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and };
	static const uint8_t after[] = { DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };
	const uint8_t *at = rest->at;

	if (left(rest) != sizeof(before) + 1 + sizeof(after) ||
	    memcmp(at, before, sizeof(before)) != 0 ||
	    memcmp(at + sizeof(before) + 1, after, sizeof(after)) != 0 ||
	    at[sizeof(before)] < DW_OP_lit0 || at[sizeof(before)] > DW_OP_lit15)
		return false;
	*offset = (at[sizeof(before)] - DW_OP_lit0) * 8;
	return true;
}

/*
 * Take the next expression off the program, and read register + offset from its front. False where
 * the program is broken; register is 0 for expressions of another kind.
 */
static bool take_expression(struct interpreter *state, struct unwind_program *expression,
			    uint64_t *number, int64_t *offset)
{
	uint64_t length, addend;
	uint8_t operation;

	*number = 0;
	if (!unwind_uleb_read(&state->program, &length) || length > left(&state->program))
		return false;
	*expression = state->program;
	expression->end = expression->at + length;
	state->program.at += length;
	state->program.address += length;
	if (!take(expression, &operation, 1) ||
	    (operation != DW_OP_breg0 + REGISTER_RBP && operation != DW_OP_breg0 + REGISTER_RSP) ||
	    !sleb_read(expression, offset))
		return true;
	while (left(expression) > 0 && *expression->at == DW_OP_plus_uconst) {
		expression->at++;
		if (!unwind_uleb_read(expression, &addend) || addend > INT64_MAX ||
		    __builtin_add_overflow(*offset, (int64_t)addend, offset))
			return true;
	}
	*number = operation - DW_OP_breg0;
	return true;
}

/* A dereferenced location plus a number: assembly that aligned the stack saved the old rsp. */
static bool is_deref(const struct unwind_program *rest, uint64_t *addend)
{
	struct unwind_program program = *rest;
	uint8_t operation;

	*addend = 0;
	if (!take(&program, &operation, 1) || operation != DW_OP_deref)
		return false;
	if (left(&program) == 0)
		return true;
	return take(&program, &operation, 1) && operation == DW_OP_plus_uconst &&
	       unwind_uleb_read(&program, addend) && left(&program) == 0;
}

static bool run_cfa_expression(struct interpreter *state)
{
	struct unwind_rules *rules = &state->rules;
	struct unwind_program rest;
	uint64_t number;
	bool is_rsp;

	rules->by_register = false;
	rules->cfa = CFA_STOP;
	if (!take_expression(state, &rest, &number, &rules->offset))
		return false;
	if (number == 0)
		return true;
	is_rsp = number == REGISTER_RSP;
	if (left(&rest) == 0)
		rules->cfa = is_rsp ? CFA_RSP : CFA_RBP;
	else if (is_deref(&rest, &rules->addend))
		rules->cfa = is_rsp ? CFA_RSP_DEREF : CFA_RBP_DEREF;
	else if (is_rsp && rules->offset == 8 && is_plt(&rest, &rules->offset))
		rules->cfa = CFA_PLT;
	return true;
}

/* DW_CFA_expression: the register is saved at the address the expression computes. */
static bool run_register_expression(struct interpreter *state)
{
	struct unwind_program rest;
	uint64_t number, base;
	int64_t offset = 0;

	if (!unwind_uleb_read(&state->program, &number) ||
	    !take_expression(state, &rest, &base, &offset))
		return false;
	if (base == 0 || left(&rest) > 0)
		set_rule(state, number, VALUE_OTHER, 0);
	else
		set_rule(state, number, base == REGISTER_RBP ? VALUE_AT_RBP : VALUE_AT_RSP, offset);
	return true;
}

/* The instructions that set the CFA. */
static bool run_cfa(struct interpreter *state, uint8_t operation)
{
	bool sets_register =
		operation != DW_CFA_def_cfa_offset && operation != DW_CFA_def_cfa_offset_sf;
	struct unwind_rules *rules = &state->rules;
	uint64_t number = 0, offset;

	if (sets_register && !unwind_uleb_read(&state->program, &number))
		return false;
	if (operation == DW_CFA_def_cfa_sf || operation == DW_CFA_def_cfa_offset_sf) {
		if (!take_factored(state, true, &rules->offset))
			return false;
	} else if (operation != DW_CFA_def_cfa_register) {
		if (!unwind_uleb_read(&state->program, &offset) || offset > INT64_MAX)
			return false;
		rules->offset = (int64_t)offset;
	}
	if (operation == DW_CFA_def_cfa || operation == DW_CFA_def_cfa_sf)
		rules->by_register = true;
	/* These change one half of register + offset, so there must be such a rule. */
	if (!rules->by_register)
		rules->cfa = CFA_STOP;
	else if (sets_register)
		set_cfa_register(rules, number);
	return true;
}

/* Instructions that set a register's rule: its number, then an offset if they have one. */
static bool run_register(struct interpreter *state, uint8_t operation)
{
	uint64_t number, length;
	int64_t offset = 0;

	if (!unwind_uleb_read(&state->program, &number))
		return false;
	switch (operation) {
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
		if (!take_factored(state, operation == DW_CFA_offset_extended_sf, &offset))
			return false;
		set_rule(state, number, VALUE_AT_CFA, offset);
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		if (!take_factored(state, false, &offset) || offset == INT64_MIN)
			return false;
		set_rule(state, number, VALUE_AT_CFA, -offset);
		return true;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		if (!take_factored(state, operation == DW_CFA_val_offset_sf, &offset))
			return false;
		/* rsp is the CFA by default. */
		set_rule(state, number,
			 number == REGISTER_RSP && offset == 0 ? VALUE_SAME : VALUE_OTHER, 0);
		return true;
	case DW_CFA_register:
		set_rule(state, number, VALUE_OTHER, 0);
		return unwind_uleb_read(&state->program, &length);
	case DW_CFA_val_expression:
		if (!unwind_uleb_read(&state->program, &length) || length > left(&state->program))
			return false;
		state->program.at += length;
		state->program.address += length;
		set_rule(state, number, VALUE_OTHER, 0);
		return true;
	case DW_CFA_restore_extended:
		restore_rule(state, number);
		return true;
	case DW_CFA_undefined:
		set_rule(state, number, VALUE_UNDEFINED, 0);
		return true;
	default: /* DW_CFA_same_value */
		set_rule(state, number, number == REGISTER_RBP ? VALUE_SAME : VALUE_OTHER, 0);
		return true;
	}
}

/* One instruction that does not advance the location. False: broken or not known. */
static bool run_instruction(struct interpreter *state, uint8_t operation)
{
	uint64_t ignored;
	int64_t offset;

	switch (operation & 0xc0) {
	case DW_CFA_offset:
		if (!take_factored(state, false, &offset))
			return false;
		set_rule(state, operation & 0x3f, VALUE_AT_CFA, offset);
		return true;
	case DW_CFA_restore:
		restore_rule(state, operation & 0x3f);
		return true;
	}
	switch (operation) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_GNU_args_size: /* only matters for exception handlers */
		return unwind_uleb_read(&state->program, &ignored);
	case DW_CFA_remember_state:
		if (state->remembered_count == REMEMBERED_MAX)
			return false;
		state->remembered[state->remembered_count++] = state->rules;
		return true;
	case DW_CFA_restore_state:
		if (state->remembered_count == 0)
			return false;
		state->rules = state->remembered[--state->remembered_count];
		return true;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
		return run_cfa(state, operation);
	case DW_CFA_def_cfa_expression:
		return run_cfa_expression(state);
	case DW_CFA_expression:
		return run_register_expression(state);
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_GNU_negative_offset_extended:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_register:
	case DW_CFA_val_expression:
	case DW_CFA_restore_extended:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
		return run_register(state, operation);
	default:
		return false;
	}
}

/* Bytes of the operand of DW_CFA_advance_loc1, 2 and 4; 0 for any other instruction. */
static size_t advance_size(uint8_t operation)
{
	return operation == DW_CFA_advance_loc1 ? 1 :
	       operation == DW_CFA_advance_loc2 ? 2 :
	       operation == DW_CFA_advance_loc4 ? 4 :
						  0;
}

static bool is_advance(uint8_t operation)
{
	return (operation & 0xc0) == DW_CFA_advance_loc || operation == DW_CFA_set_loc ||
	       advance_size(operation) > 0;
}

static bool run_advance(struct interpreter *state, uint8_t operation)
{
	uint64_t delta = operation & 0x3f, target;

	if (operation == DW_CFA_set_loc) {
		if (!unwind_pointer_read(&state->program, state->start->encoding, &target) ||
		    target - state->function < state->offset)
			return false;
		state->offset = target - state->function;
		return true;
	}
	if ((operation & 0xc0) != DW_CFA_advance_loc) {
		delta = 0;
		if (!take(&state->program, &delta, advance_size(operation)))
			return false;
	}
	return !__builtin_mul_overflow(delta, state->start->code_factor, &delta) &&
	       !__builtin_add_overflow(state->offset, delta, &state->offset);
}

bool unwind_start_run(struct unwind_program program, struct unwind_start *start)
{
	struct interpreter state = { .program = program, .start = start };
	uint8_t operation;

	memset(&start->rules, 0, sizeof(start->rules));
	/* No instruction has set the return address yet. */
	start->rules.ip.kind = VALUE_OTHER;
	state.rules = start->rules;
	while (take(&state.program, &operation, 1))
		if (is_advance(operation) || !run_instruction(&state, operation))
			return false;
	start->rules = state.rules;
	return true;
}

static bool fits(int64_t offset, unsigned int bits)
{
	int64_t limit = 1ll << (bits - 1);

	return offset % 8 == 0 && offset / 8 >= -limit && offset / 8 < limit;
}

static uint32_t offset_field(int64_t offset, unsigned int shift, unsigned int bits)
{
	return ((uint32_t)(offset / 8) & ((1U << bits) - 1)) << shift;
}

static bool is_at(const struct saved_value *value, int kind, int64_t offset)
{
	return (int)value->kind == kind && value->offset == offset;
}

static uint32_t encode_rbp(const struct saved_value *rbp)
{
	enum memtoll_saved_rbp kind = rbp->kind == VALUE_AT_CFA ? RBP_AT_CFA : RBP_AT_RBP;

	if (rbp->kind == VALUE_SAME)
		return RBP_SAME << 3;
	if ((rbp->kind != VALUE_AT_CFA && rbp->kind != VALUE_AT_RBP) ||
	    !fits(rbp->offset, UNWIND_RBP_BITS))
		return RBP_UNKNOWN << 3;
	return (uint32_t)kind << 3 | offset_field(rbp->offset, UNWIND_RBP_SHIFT, UNWIND_RBP_BITS);
}

/* The offset of a _DEREF rule: see UNWIND_DEREF_BITS. */
static bool encode_deref(const struct unwind_rules *rules, uint32_t *field)
{
	if (!fits(rules->offset, UNWIND_DEREF_BITS) || rules->addend % 8 ||
	    rules->addend / 8 >= 1 << UNWIND_ADDEND_BITS)
		return false;
	*field = offset_field(rules->offset, UNWIND_CFA_SHIFT + UNWIND_ADDEND_BITS,
			      UNWIND_DEREF_BITS) |
		 (uint32_t)(rules->addend / 8) << UNWIND_CFA_SHIFT;
	return true;
}

static uint32_t encode(const struct unwind_rules *rules, bool is_signal)
{
	bool is_deref = rules->cfa == CFA_RSP_DEREF || rules->cfa == CFA_RBP_DEREF;
	uint32_t field = 0;

	if (rules->ip.kind == VALUE_UNDEFINED)
		return CFA_END;
	if (is_signal && rules->cfa == CFA_RSP_DEREF && rules->offset == UCONTEXT_RSP &&
	    rules->addend == 0 && is_at(&rules->ip, VALUE_AT_RSP, UCONTEXT_IP) &&
	    is_at(&rules->rbp, VALUE_AT_RSP, UCONTEXT_RBP))
		return CFA_SIGNAL;
	if (rules->cfa == CFA_STOP || !is_at(&rules->ip, VALUE_AT_CFA, -8) ||
	    rules->rsp.kind != VALUE_SAME)
		return CFA_STOP;
	if (is_deref ? !encode_deref(rules, &field) : !fits(rules->offset, UNWIND_CFA_BITS))
		return CFA_STOP;
	if (!is_deref)
		field = offset_field(rules->offset, UNWIND_CFA_SHIFT, UNWIND_CFA_BITS);
	return rules->cfa | encode_rbp(&rules->rbp) | field;
}

bool unwind_program_run(struct unwind_program program, const struct unwind_start *start,
			uint64_t function, uint64_t length, unwind_rule_fn callback, void *argument)
{
	struct interpreter state = {
		.program = program,
		.start = start,
		.rules = start->rules,
		.function = function,
	};
	uint8_t operation;

	while (take(&state.program, &operation, 1)) {
		if (!is_advance(operation)) {
			if (!run_instruction(&state, operation))
				return false;
			continue;
		}
		if (!callback(argument, state.offset, encode(&state.rules, start->is_signal)) ||
		    !run_advance(&state, operation))
			return false;
		if (state.offset >= length)
			return true;
	}
	return callback(argument, state.offset, encode(&state.rules, start->is_signal));
}
