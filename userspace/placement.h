/* SPDX-License-Identifier: GPL-2.0 */
/*
 * placement.h: at which instruction of a function a uprobe may sit.
 *
 * The kernel emulates push, nop, jmp, jcc and call and single-steps the rest, which costs the
 * target about 20 times as much (arch/x86/kernel/uprobes.c: push_setup_xol_ops,
 * branch_setup_xol_ops). It also takes VEX instructions with opcode 70-7f for a short jcc and
 * skips them. So the place is chosen by a whitelist of legacy byte patterns, at or after the
 * first instruction, as long as every call passes and the arguments are still where the ABI put
 * them.
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

/* How many bytes of code are looked at: free of jemalloc 5.3 has its first jump at byte 48. */
#define PLACEMENT_WINDOW 64

struct placement {
	bool found;
	uint32_t offset;	/* bytes from the symbol to the chosen instruction */
	uint32_t pushed;	/* bytes the stack pointer has moved down before it */
	char instruction[48];	/* as text, for doctor: "push %r12" */
	char refusal[96];	/* why nothing was found: "no emulated instruction in 64 bytes" */
};

/*
 * Find the place in code[0..len). arguments: PLACEMENT_* that must be intact. need_return: the
 * stack pointer must not have moved, because a return probe replaces the word it points to.
 * 0 and place->found, or -ENOENT and place->refusal.
 */
int placement_find(const uint8_t *code, size_t len, uint32_t arguments, bool need_return,
		   struct placement *place);

#endif /* MEMTOLL_PLACEMENT_H */
