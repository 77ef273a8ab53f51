/* SPDX-License-Identifier: GPL-2.0 */
/*
 * placement.h: chooses the instruction of a function to put a uprobe on.
 *
 * The kernel emulates push, nop, jmp, jcc and call and single-steps the rest, which costs the
 * target about 20 times as much (arch/x86/kernel/uprobes.c: push_setup_xol_ops,
 * branch_setup_xol_ops). It also takes VEX instructions with opcode 70-7f for a short jcc and
 * skips them. So the place is chosen by a whitelist of legacy byte patterns, at or after the
 * first instruction, as long as every call passes and the arguments are still in registers: where
 * the ABI put them, or where the code has copied them to.
 */
#ifndef MEMTOLL_PLACEMENT_H
#define MEMTOLL_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Argument registers that the probe reads, System V AMD64 ABI 3.2.3. */
#define PLACEMENT_RDI (1U << 0)
#define PLACEMENT_RSI (1U << 1)
#define PLACEMENT_RDX (1U << 2)

#define PLACEMENT_ARGUMENTS 3

/* How many bytes of code are looked at: free of jemalloc 5.3 has its first jump at byte 48. */
#define PLACEMENT_WINDOW 64

struct placement {
	bool found;
	uint32_t offset; /* bytes from the symbol to the chosen instruction */
	uint32_t pushed; /* bytes the stack pointer has moved down before it */
	bool forwards;	 /* it is a jmp, preceded only by copies and loads */
	int64_t target;	 /* of that jmp, in bytes from the symbol */
	/*
	 * The register that has each argument there, in the numbering of instructions (rax 0, rcx
	 * 1, rdx 2, rbx 3, rsp 4, rbp 5, rsi 6, rdi 7, r8 8 ...): code may copy an argument and
	 * then overwrite its register. -1: overwritten, only for arguments that were not requested.
	 */
	int8_t registers[PLACEMENT_ARGUMENTS];
	char instruction[48]; /* as text, for doctor: "push %r12" */
	char refusal[96];     /* why nothing was found: "no emulated instruction in 64 bytes" */
};

/*
 * Find the place in code[0..len). arguments: PLACEMENT_* that must still be in some register.
 * need_return: the stack pointer must not have moved, because a return probe replaces the word it
 * points to. 0 and place->found, or -ENOENT and place->refusal.
 */
int placement_find(const uint8_t *code, size_t len, uint32_t arguments, bool need_return,
		   struct placement *place);

/* Name of a register by its number: "rax". */
const char *placement_register(int8_t number);

#endif /* MEMTOLL_PLACEMENT_H */
