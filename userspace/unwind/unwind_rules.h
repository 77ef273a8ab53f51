/* SPDX-License-Identifier: GPL-2.0 */
/*
 * unwind_rules.h: runs the programs of CIEs and FDEs (DWARF 5, 6.4.2); results are the rules of
 * unwind rows (bpf/wire). Input is hostile: reads stay inside the program, work is linear in its
 * length, memory constant.
 */
#ifndef MEMTOLL_UNWIND_RULES_H
#define MEMTOLL_UNWIND_RULES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire/unwind_rows.h"

/* Where a register of the caller is. */
struct saved_value {
	enum {
		VALUE_SAME, /* in the register itself; of rsp: the CFA, as always */
		VALUE_UNDEFINED,
		VALUE_AT_CFA, /* in memory at CFA + offset */
		VALUE_AT_RBP, /* in memory at rbp + offset */
		VALUE_AT_RSP, /* in memory at rsp + offset */
		VALUE_OTHER,  /* anything else */
	} kind;
	int64_t offset;
};

/* One row of the table that a program describes, as far as it matters here. */
struct unwind_rules {
	bool by_register;     /* the CFA is a register + offset, not an expression */
	enum memtoll_cfa cfa; /* CFA_STOP where it cannot be expressed */
	int64_t offset;
	uint64_t addend; /* of the _DEREF rules */
	struct saved_value rbp;
	struct saved_value rsp;
	struct saved_value ip; /* the return address */
};

/* What the programs of a CIE's FDEs start from. */
struct unwind_start {
	uint64_t code_factor;
	int64_t data_factor;
	uint8_t encoding; /* DW_EH_PE_*, of the addresses */
	bool is_signal;	  /* augmentation 'S' */
	struct unwind_rules rules;
};

/* Call frame instructions: their bytes, and the address the first of them has in the process. */
struct unwind_program {
	const uint8_t *at;
	const uint8_t *end;
	uint64_t address;
};

/* An encoded pointer of .eh_frame (Linux Standard Base 5, 10.5.1). False: not used on x86-64. */
bool unwind_pointer_read(struct unwind_program *program, uint8_t encoding, uint64_t *value);
bool unwind_uleb_read(struct unwind_program *program, uint64_t *value);

/* Run a CIE's program; the factors in start are set. False where the program is broken. */
bool unwind_start_run(struct unwind_program program, struct unwind_start *start);

/* Rule that holds from the function's start + offset. Returning false ends the run. */
typedef bool (*unwind_rule_fn)(void *argument, uint64_t offset, uint32_t rule);

/*
 * Run an FDE's program for the function at [function, function + length), no further. Offsets do
 * not descend; of equal ones the last holds. False: broken, or ended by the callback.
 */
bool unwind_program_run(struct unwind_program program, const struct unwind_start *start,
			uint64_t function, uint64_t length, unwind_rule_fn callback,
			void *argument);

#endif /* MEMTOLL_UNWIND_RULES_H */
