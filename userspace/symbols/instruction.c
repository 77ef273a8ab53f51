// SPDX-License-Identifier: GPL-2.0
#include "symbols/instruction.h"

bool code_decode(const struct code *code, size_t at, struct instruction *into)
{
	into->at = at;
	return at < code->len &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeFull(&code->decoder, code->bytes + at, code->len - at,
						   &into->insn, into->operands));
}

ZydisRegister register_whole(ZydisRegister reg)
{
	ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return wide == ZYDIS_REGISTER_NONE ? reg : wide;
}

bool register_is_general(ZydisRegister reg)
{
	return reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15;
}

bool register_is_vector(ZydisRegister reg)
{
	return reg >= ZYDIS_REGISTER_ZMM0 && reg <= ZYDIS_REGISTER_ZMM31;
}

bool instruction_writes(const struct instruction *one, ZydisRegister reg)
{
	unsigned int i;

	for (i = 0; i < one->insn.operand_count; i++)
		if (one->operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (one->operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    register_whole(one->operands[i].reg.value) == reg)
			return true;
	return false;
}

bool is_plain_move(ZydisMnemonic mnemonic)
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

bool is_counting(ZydisMnemonic mnemonic)
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
	case ZYDIS_MNEMONIC_SHL:
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
bool instruction_clears(const struct instruction *one)
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

const ZydisDecodedOperand *instruction_memory(const struct instruction *one)
{
	unsigned int i;

	for (i = 0; i < one->insn.operand_count; i++)
		if (one->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    one->operands[i].mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
		    one->insn.mnemonic != ZYDIS_MNEMONIC_NOP)
			return &one->operands[i];
	return NULL;
}

ZydisRegister instruction_moves(const struct instruction *one)
{
	unsigned int i;

	for (i = 0; i < one->insn.operand_count_visible; i++)
		if (one->operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    !(one->operands[i].reg.value >= ZYDIS_REGISTER_K0 &&
		      one->operands[i].reg.value <= ZYDIS_REGISTER_K7))
			return register_whole(one->operands[i].reg.value);
	return ZYDIS_REGISTER_NONE;
}

bool instruction_jumps(const struct instruction *one, size_t *target)
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

bool instruction_steps(const struct instruction *one, int64_t *step)
{
	const ZydisDecodedOperand *from = &one->operands[1];

	switch (one->insn.mnemonic) {
	case ZYDIS_MNEMONIC_INC:
		*step = 1;
		return true;
	case ZYDIS_MNEMONIC_DEC:
		*step = -1;
		return true;
	case ZYDIS_MNEMONIC_LEA:
		*step = from->mem.disp.value;
		return from->mem.index == ZYDIS_REGISTER_NONE &&
		       from->mem.base != ZYDIS_REGISTER_RIP;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		*step = one->insn.mnemonic == ZYDIS_MNEMONIC_ADD ? from->imm.value.s :
								   -from->imm.value.s;
		return from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	default:
		return false;
	}
}

bool code_set_before(const struct code *code, size_t place, ZydisRegister reg,
		     struct instruction *into)
{
	struct instruction one;
	size_t start, at;
	bool set;

	for (start = 0; start < INSTRUCTION_BYTES && start < place; start++) {
		set = false;
		for (at = start; at < place && code_decode(code, at, &one); at += one.insn.length) {
			if (one.insn.meta.category == ZYDIS_CATEGORY_RET ||
			    one.insn.meta.category == ZYDIS_CATEGORY_CALL) {
				set = false;
			} else if (instruction_writes(&one, reg)) {
				set = true;
				*into = one;
			}
		}
		if (at == place)
			return set;
	}
	return false;
}

bool code_clears_before(const struct code *code, size_t place, ZydisRegister reg)
{
	struct instruction one;

	return code_set_before(code, place, reg, &one) && instruction_clears(&one);
}
