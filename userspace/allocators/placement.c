// SPDX-License-Identifier: GPL-2.0
/*
 * Walks from a function's first byte to an instruction that the kernel emulates.
 *
 * Zydis decodes an instruction's length, what it writes and where it jumps. Whether the kernel
 * emulates it is decided by its bytes, because the kernel looks at nothing else and mistakes
 * instructions that are not legacy encoded.
 */
#include <Zydis/Zydis.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "allocators/placement.h"

/* The probe's cookie has 8 bits for the bytes pushed (COOKIE_SP_SHIFT). */
#define MAX_PUSHED 255

struct walk {
	ZydisDecoder decoder;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	const uint8_t *code;
	size_t len; /* bytes of code */
	size_t at;  /* offset of insn */
	int64_t pushed;
	uint16_t holders[PLACEMENT_ARGUMENTS]; /* bit mask of registers with the argument */
	bool worked;			       /* some instruction was not a mere copy or load */
};

__attribute__((format(printf, 2, 3))) static int refuse(struct placement *place, const char *format,
							...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(place->refusal, sizeof(place->refusal), format, args);
	va_end(args);
	return -ENOENT;
}

/*
 * Length of the instruction at code if kernels 5.10 to 7.2 all emulate it, else 0.
 * push_setup_xol_ops() takes 50-57 alone or behind REX 41; branch_setup_xol_ops() the jumps, and
 * 90 behind any legacy prefix, of which only 66 is wanted here. A call is emulated too, but then
 * the word on the stack is no longer the function's own return address.
 */
static size_t emulated_length(const uint8_t *code, size_t len)
{
	uint8_t op = len > 0 ? code[0] : 0;
	uint8_t op2 = len > 1 ? code[1] : 0;
	size_t length = 0;

	if ((op >= 0x50 && op <= 0x57) || op == 0x90)
		length = 1;
	else if ((op >= 0x70 && op <= 0x7f) || op == 0xeb)
		length = 2;
	else if (op == 0xe9)
		length = 5;
	else if (op == 0x41 && op2 >= 0x50 && op2 <= 0x57)
		length = 2;
	else if (op == 0x66 && op2 == 0x90)
		length = 2;
	else if (op == 0x0f && op2 >= 0x80 && op2 <= 0x8f)
		length = 6;
	return length <= len ? length : 0;
}

static ZyanStatus decode(struct walk *walk)
{
	return ZydisDecoderDecodeFull(&walk->decoder, walk->code + walk->at, walk->len - walk->at,
				      &walk->insn, walk->operands);
}

static ZydisRegister whole_register(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
}

/* Whether the instruction writes the register or a part of it, even if only conditionally. */
static bool writes(const struct walk *walk, ZydisRegister reg)
{
	for (unsigned int i = 0; i < walk->insn.operand_count; i++) {
		const ZydisDecodedOperand *operand = &walk->operands[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    whole_register(operand->reg.value) == reg)
			return true;
	}
	return false;
}

/* Number of a 64-bit general register, -1 for others. */
static int register_number(ZydisRegister reg)
{
	return reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15 ?
		       (int)(reg - ZYDIS_REGISTER_RAX) :
		       -1;
}

/* Whether the instruction copies all 64 bits of a general register, and which to which. */
static bool copies(const struct walk *walk, int *from, int *to)
{
	const ZydisDecodedOperand *operands = walk->operands;

	if (walk->insn.mnemonic != ZYDIS_MNEMONIC_MOV || walk->insn.operand_count < 2 ||
	    operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    operands[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	*to = register_number(operands[0].reg.value);
	*from = register_number(operands[1].reg.value);
	return *to >= 0 && *from >= 0;
}

/* Follow the arguments over one instruction: false if a wanted one is in no register any more. */
static bool follow_arguments(struct walk *walk, uint32_t arguments)
{
	bool kept = true;
	int from, to;

	for (size_t i = 0; i < PLACEMENT_ARGUMENTS; i++) {
		uint16_t held = walk->holders[i];

		for (int reg = 0; reg < 16; reg++)
			if (writes(walk, ZYDIS_REGISTER_RAX + reg))
				walk->holders[i] &= ~(1U << reg);
		if (copies(walk, &from, &to) && (held & 1U << from))
			walk->holders[i] |= 1U << to;
		kept &= walk->holders[i] || !(arguments & 1U << i);
	}
	return kept;
}

/* The argument's ABI register if it is still there. */
static int8_t holder(const struct walk *walk, size_t argument)
{
	static const int8_t abi[PLACEMENT_ARGUMENTS] = { 7, 6, 2 };
	uint16_t held = walk->holders[argument];

	if (held & 1U << abi[argument])
		return abi[argument];
	return (int8_t)(held ? __builtin_ctz(held) : -1);
}

/* Whether execution may not continue after the instruction. */
static bool is_control_flow(const struct walk *walk)
{
	switch (walk->insn.meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_INTERRUPT:
		return true;
	default:
		break;
	}
	switch (walk->insn.mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
		return true;
	default:
		break;
	}
	/* hlt and its like fault in user mode; xbegin and xabort jump without being branches. */
	return (walk->insn.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) ||
	       writes(walk, ZYDIS_REGISTER_RIP);
}

/* Target of a relative jump, as an offset from the symbol. */
static bool jump_target(const struct walk *walk, int64_t *target)
{
	const ZydisDecodedOperand *operand = &walk->operands[0];

	if (walk->insn.operand_count == 0 || operand->type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
	    !operand->imm.is_relative || walk->insn.meta.category == ZYDIS_CATEGORY_CALL)
		return false;
	*target = (int64_t)walk->at + walk->insn.length + operand->imm.value.s;
	return true;
}

/*
 * How many bytes an instruction that writes rsp moves it down; false if that is not constant. gcc
 * uses `add $-128` for `sub $128`, since its immediate is shorter.
 */
static bool stack_step(const struct walk *walk, int64_t *step)
{
	const ZydisDecodedOperand *first = &walk->operands[0];
	const ZydisDecodedOperand *second = &walk->operands[1];

	*step = 0;
	if (walk->insn.mnemonic == ZYDIS_MNEMONIC_PUSH ||
	    walk->insn.mnemonic == ZYDIS_MNEMONIC_PUSHFQ) {
		for (unsigned int i = 0; i < walk->insn.operand_count; i++) {
			const ZydisDecodedOperand *operand = &walk->operands[i];

			if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
			    operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
				*step = operand->size / 8;
		}
		return *step > 0;
	}
	if (walk->insn.operand_count < 2 || first->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    first->reg.value != ZYDIS_REGISTER_RSP || second->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	if (walk->insn.mnemonic == ZYDIS_MNEMONIC_SUB)
		*step = second->imm.value.s;
	else if (walk->insn.mnemonic == ZYDIS_MNEMONIC_ADD)
		*step = -second->imm.value.s;
	else
		return false;
	return true;
}

/* Follow the stack pointer over one instruction: 0, or -ENOENT with the refusal. */
static int follow_stack(struct walk *walk, bool need_return, struct placement *place)
{
	int64_t step;

	if (!writes(walk, ZYDIS_REGISTER_RSP))
		return 0;
	if (need_return)
		return refuse(place, "the stack pointer moves at +%zu, before any place", walk->at);
	if (!stack_step(walk, &step) || walk->pushed + step < 0 || walk->pushed + step > MAX_PUSHED)
		return refuse(place, "the stack pointer moves at +%zu, not followed", walk->at);
	walk->pushed += step;
	return 0;
}

/*
 * Whether a jump in the window leads back to or before the chosen instruction: then one call could
 * hit the probe several times. A jump to the very start counts as well.
 */
static bool is_in_loop(const struct walk *chosen)
{
	struct walk walk = *chosen;
	int64_t target;

	while (walk.at < walk.len && ZYAN_SUCCESS(decode(&walk))) {
		if (jump_target(&walk, &target) && target >= 0 && target <= (int64_t)chosen->at)
			return true;
		walk.at += walk.insn.length;
	}
	return false;
}

/* Text of the instruction, AT&T; a jump's target is shown as an offset from the symbol. */
static void describe(const struct walk *walk, struct placement *place)
{
	ZydisFormatter formatter;

	place->instruction[0] = '\0';
	if (!ZYAN_SUCCESS(ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_ATT)))
		return;
	ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
	ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_RELATIVE,
				  ZYDIS_PADDING_DISABLED);
	ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_FORCE_RELATIVE_BRANCHES,
				  ZYAN_TRUE);
	if (!ZYAN_SUCCESS(ZydisFormatterFormatInstruction(
		    &formatter, &walk->insn, walk->operands, walk->insn.operand_count_visible,
		    place->instruction, sizeof(place->instruction), 0, NULL)))
		place->instruction[0] = '\0';
}

static int choose(const struct walk *walk, struct placement *place)
{
	if (is_in_loop(walk))
		return refuse(place, "a loop leads back to the emulated instruction at +%zu",
			      walk->at);
	place->found = true;
	place->offset = (uint32_t)walk->at;
	place->pushed = (uint32_t)walk->pushed;
	place->forwards = !walk->worked && walk->insn.mnemonic == ZYDIS_MNEMONIC_JMP &&
			  jump_target(walk, &place->target);
	for (size_t i = 0; i < PLACEMENT_ARGUMENTS; i++)
		place->registers[i] = holder(walk, i);
	describe(walk, place);
	return 0;
}

const char *placement_register(int8_t number)
{
	return number < 0 || number > 15 ? "" : ZydisRegisterGetString(ZYDIS_REGISTER_RAX + number);
}

int placement_find(const uint8_t *code, size_t len, uint32_t arguments, bool need_return,
		   struct placement *place)
{
	/* rdi, rsi, rdx */
	struct walk walk = { .code = code, .holders = { 1U << 7, 1U << 6, 1U << 2 } };
	ZyanStatus status;
	size_t emulated;

	memset(place, 0, sizeof(*place));
	walk.len = len < PLACEMENT_WINDOW ? len : PLACEMENT_WINDOW;
	if (!ZYAN_SUCCESS(ZydisDecoderInit(&walk.decoder, ZYDIS_MACHINE_MODE_LONG_64,
					   ZYDIS_STACK_WIDTH_64)))
		return refuse(place, "the decoder cannot be set up");
	while (walk.at < walk.len) {
		status = decode(&walk);
		if (status == ZYDIS_STATUS_NO_MORE_DATA)
			break;
		if (!ZYAN_SUCCESS(status))
			return refuse(place, "the code cannot be decoded at +%zu", walk.at);
		emulated = emulated_length(code + walk.at, walk.len - walk.at);
		if (emulated && emulated == walk.insn.length)
			return choose(&walk, place);
		if (is_control_flow(&walk))
			return refuse(place, "%s at +%zu comes before any emulated instruction",
				      ZydisMnemonicGetString(walk.insn.mnemonic), walk.at);
		if (!follow_arguments(&walk, arguments))
			return refuse(place, "%s at +%zu overwrites an argument",
				      ZydisMnemonicGetString(walk.insn.mnemonic), walk.at);
		if (follow_stack(&walk, need_return, place))
			return -ENOENT;
		walk.worked |= walk.insn.mnemonic != ZYDIS_MNEMONIC_MOV &&
			       walk.insn.mnemonic != ZYDIS_MNEMONIC_ENDBR64 &&
			       walk.insn.mnemonic != ZYDIS_MNEMONIC_XOR;
		walk.at += walk.insn.length;
	}
	return refuse(place, "no emulated instruction in %zu bytes", walk.len);
}
