/* SPDX-License-Identifier: GPL-2.0 */
/*
 * unwind_witness.h: rows against libdw's interpreter, an independent reader of the same files. What
 * libdw says is evaluated on an imagined machine, and so is what wire/unwind_rows.h says that a
 * rule means: both must find the same caller.
 */
#ifndef MEMTOLL_TESTS_UNWIND_WITNESS_H
#define MEMTOLL_TESTS_UNWIND_WITNESS_H

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <inttypes.h>

#include "programs.h"
#include "unwind/unwind_table.h"

/* ---- the imagined machine ---- */

struct machine {
	uint64_t rip;
	uint64_t rsp;
	uint64_t rbp;
};

struct caller {
	bool is_known;
	bool is_end; /* there is none */
	uint64_t cfa;
	uint64_t ip_at; /* where the return address lies */
	bool knows_rbp;
	uint64_t rbp;
};

/* Other content at every address. */
static inline uint64_t memory_at(uint64_t address)
{
	address *= 0x9e3779b97f4a7c15;
	return address ^ address >> 29;
}

static inline struct caller caller_by_rule(uint32_t rule, const struct machine *machine)
{
	int64_t offset = UNWIND_CFA_OFFSET(rule), rbp_offset = UNWIND_RBP_OFFSET(rule);
	struct caller caller = { .is_known = true, .knows_rbp = true };

	switch (UNWIND_CFA(rule)) {
	case CFA_STOP:
		caller.is_known = false;
		return caller;
	case CFA_END:
		caller.is_end = true;
		return caller;
	case CFA_SIGNAL: /* struct ucontext: uapi/asm/sigcontext.h of the kernel */
		caller.cfa = memory_at(machine->rsp + 160);
		caller.ip_at = machine->rsp + 168;
		caller.rbp = memory_at(machine->rsp + 120);
		return caller;
	case CFA_RSP:
		caller.cfa = machine->rsp + (uint64_t)offset;
		break;
	case CFA_RBP:
		caller.cfa = machine->rbp + (uint64_t)offset;
		break;
	case CFA_RBP_DEREF:
		caller.cfa = memory_at(machine->rbp + (uint64_t)UNWIND_DEREF_OFFSET(rule)) +
			     UNWIND_ADDEND(rule);
		break;
	case CFA_RSP_DEREF:
		caller.cfa = memory_at(machine->rsp + (uint64_t)UNWIND_DEREF_OFFSET(rule)) +
			     UNWIND_ADDEND(rule);
		break;
	case CFA_PLT:
		caller.cfa = machine->rsp + 8;
		if ((machine->rip & 15) >= (uint64_t)offset / 8)
			caller.cfa += 8;
		break;
	}
	caller.ip_at = caller.cfa - 8;
	switch (UNWIND_SAVED_RBP(rule)) {
	case RBP_SAME:
		caller.rbp = machine->rbp;
		break;
	case RBP_AT_CFA:
		caller.rbp = memory_at(caller.cfa + (uint64_t)rbp_offset);
		break;
	case RBP_AT_RBP:
		caller.rbp = memory_at(machine->rbp + (uint64_t)rbp_offset);
		break;
	case RBP_UNKNOWN:
		caller.knows_rbp = false;
		break;
	}
	return caller;
}

static inline bool register_value(uint64_t number, const struct machine *machine, uint64_t *value)
{
	*value = number == 6 ? machine->rbp : number == 7 ? machine->rsp : machine->rip;
	return number == 6 || number == 7 || number == 16;
}

/* The value of an expression; *is_value: it is no address. False: needs what is not imagined. */
static inline bool evaluate(const Dwarf_Op *ops, size_t count, const struct machine *machine,
			    uint64_t cfa, uint64_t *result, bool *is_value)
{
	uint64_t stack[16] = { 0 };
	size_t depth = 0;

	*is_value = false;
	for (size_t i = 0; i < count; i++) {
		uint8_t atom = ops[i].atom;
		uint64_t *top = &stack[depth - (depth > 0)];

		assert_true(depth < 15);
		if (atom == DW_OP_bregx || (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)) {
			bool is_x = atom == DW_OP_bregx;

			if (!register_value(is_x ? ops[i].number : atom - (uint64_t)DW_OP_breg0,
					    machine, &stack[depth]))
				return false;
			stack[depth++] += is_x ? ops[i].number2 : ops[i].number;
		} else if (atom == DW_OP_call_frame_cfa) {
			stack[depth++] = cfa;
		} else if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
			stack[depth++] = atom - DW_OP_lit0;
		} else if (atom == DW_OP_plus_uconst && depth > 0) {
			*top += ops[i].number;
		} else if (atom == DW_OP_deref && depth > 0) {
			*top = memory_at(*top);
		} else if (atom == DW_OP_stack_value && i + 1 == count) {
			*is_value = true;
		} else if (depth > 1 && (atom == DW_OP_plus || atom == DW_OP_and ||
					 atom == DW_OP_ge || atom == DW_OP_shl)) {
			depth--;
			top = &stack[depth - 1];
			*top = atom == DW_OP_plus ? *top + stack[depth] :
			       atom == DW_OP_and  ? *top & stack[depth] :
			       atom == DW_OP_ge	  ? (int64_t)*top >= (int64_t)stack[depth] :
						    *top << stack[depth];
		} else {
			return false;
		}
	}
	*result = depth > 0 ? stack[depth - 1] : 0;
	return depth > 0;
}

/* What libdw says of a place in the code. */
struct witness {
	Dwarf_Frame *frame;
	Dwarf_Op *cfa, *ip, *rbp, *rsp, ip_memory[3], rbp_memory[3], rsp_memory[3];
	size_t cfa_count, ip_count, rbp_count, rsp_count;
	uint64_t start, end;
};

static inline bool witness_open(Dwarf_CFI *cfi, uint64_t pc, struct witness *witness)
{
	bool is_signal;

	if (dwarf_cfi_addrframe(cfi, pc, &witness->frame) != 0)
		return false;
	assert_int_equal(
		dwarf_frame_info(witness->frame, &witness->start, &witness->end, &is_signal), 16);
	if (dwarf_frame_cfa(witness->frame, &witness->cfa, &witness->cfa_count) != 0)
		witness->cfa_count = 0;
	assert_int_equal(dwarf_frame_register(witness->frame, 16, witness->ip_memory, &witness->ip,
					      &witness->ip_count),
			 0);
	assert_int_equal(dwarf_frame_register(witness->frame, 6, witness->rbp_memory, &witness->rbp,
					      &witness->rbp_count),
			 0);
	assert_int_equal(dwarf_frame_register(witness->frame, 7, witness->rsp_memory, &witness->rsp,
					      &witness->rsp_count),
			 0);
	return true;
}

static inline struct caller caller_by_witness(const struct witness *witness,
					      const struct machine *machine)
{
	struct caller caller = { 0 };
	bool is_value;

	caller.is_end = witness->ip == witness->ip_memory && witness->ip_count == 0;
	caller.is_known =
		caller.is_end ||
		(evaluate(witness->cfa, witness->cfa_count, machine, 0, &caller.cfa, &is_value) &&
		 evaluate(witness->ip, witness->ip_count, machine, caller.cfa, &caller.ip_at,
			  &is_value) &&
		 !is_value);
	if (!witness->rbp) {
		caller.knows_rbp = true;
		caller.rbp = machine->rbp;
	} else if (evaluate(witness->rbp, witness->rbp_count, machine, caller.cfa, &caller.rbp,
			    &is_value)) {
		caller.knows_rbp = true;
		if (!is_value)
			caller.rbp = memory_at(caller.rbp);
	}
	return caller;
}

static inline bool is_offset(const Dwarf_Op *ops, size_t count, int64_t lowest, int64_t highest)
{
	return count == 2 && ops[0].atom == DW_OP_call_frame_cfa &&
	       ops[1].atom == DW_OP_plus_uconst && (int64_t)ops[1].number >= lowest &&
	       (int64_t)ops[1].number <= highest && ops[1].number % 8 == 0;
}

/* Is it a rule that must be expressible? */
static inline bool must_be_known(const struct witness *witness)
{
	const Dwarf_Op *first = &witness->cfa[0];
	int64_t offset;
	bool is_deref;

	if (witness->cfa_count == 0 || witness->cfa_count > 2 ||
	    !is_offset(witness->ip, witness->ip_count, -8, -8))
		return false;
	/* The caller's rsp is the CFA, if nothing else is said. */
	if (witness->rsp_count != 2 || witness->rsp[0].atom != DW_OP_call_frame_cfa ||
	    witness->rsp[1].atom != DW_OP_stack_value)
		return false;
	is_deref = witness->cfa_count == 2 && witness->cfa[1].atom == DW_OP_deref &&
		   (first->atom == DW_OP_breg6 || first->atom == DW_OP_breg7);
	if (!is_deref && (witness->cfa_count != 1 || first->atom != DW_OP_bregx ||
			  (first->number != 6 && first->number != 7)))
		return false;
	offset = (int64_t)(is_deref ? first->number : first->number2);
	return offset % 8 == 0 && offset >= -65536 * 8 && offset < 65536 * 8;
}

struct tally {
	uint64_t code_bytes; /* with call frame information */
	uint64_t stop_bytes; /* of them inexpressible */
	uint64_t rules;
};

static inline void compare_rule(const char *name, uint64_t pc, uint32_t rule,
				const struct witness *witness, struct tally *tally)
{
	for (unsigned int i = 0; i < 16; i++) {
		struct machine machine = {
			.rip = pc + i,
			.rsp = memory_at(pc) & ~7ull,
			.rbp = memory_at(pc + 1) & ~7ull,
		};
		struct caller ours = caller_by_rule(rule, &machine);
		struct caller theirs = caller_by_witness(witness, &machine);

		if (ours.is_end != theirs.is_end || (ours.is_known && !theirs.is_known) ||
		    (!ours.is_known && must_be_known(witness)))
			fail_msg("%s %#" PRIx64 ": rule %#x is wrong", name, pc, rule);
		if (!ours.is_known || ours.is_end)
			continue;
		if (ours.cfa != theirs.cfa || ours.ip_at != theirs.ip_at ||
		    (ours.knows_rbp && (!theirs.knows_rbp || ours.rbp != theirs.rbp)))
			fail_msg("%s %#" PRIx64 ": rule %#x finds another caller", name, pc, rule);
		if (!ours.knows_rbp &&
		    (!witness->rbp || is_offset(witness->rbp, witness->rbp_count, -4096, 4088)))
			fail_msg("%s %#" PRIx64 ": rule %#x does not know rbp", name, pc, rule);
	}
	tally->rules++;
	tally->code_bytes += witness->end - pc;
	if (UNWIND_CFA(rule) == CFA_STOP)
		tally->stop_bytes += witness->end - pc;
}

/* What the header promises. */
static inline void check_rows(const struct unwind_table *table)
{
	assert_true(table->count > 0 && table->count <= UNWIND_ROWS_MAX);
	assert_int_equal(table->rows[table->count - 1].rule, CFA_STOP);
	for (size_t i = 1; i < table->count; i++) {
		assert_true(table->rows[i - 1].pc < table->rows[i].pc);
		assert_int_not_equal(table->rows[i - 1].rule, table->rows[i].rule);
	}
	assert_null(unwind_table_find(table, table->rows[0].pc - 1));
}

/* Every byte of the code: libdw's rule where it has one, none where it has none. */
static inline struct tally compare_with_libdw(const char *name, Elf *elf,
					      const struct unwind_table *table)
{
	Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
	struct tally tally = { 0 };
	size_t segments;

	check_rows(table);
	assert_non_null(cfi);
	assert_int_equal(elf_getphdrnum(elf, &segments), 0);
	for (size_t i = 0; i < segments; i++) {
		GElf_Phdr segment;

		assert_non_null(gelf_getphdr(elf, (int)i, &segment));
		if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X))
			continue;
		for (uint64_t pc = segment.p_vaddr; pc < segment.p_vaddr + segment.p_filesz;) {
			uint32_t offset = (uint32_t)(pc - table->base);
			const struct memtoll_unwind_row *row = unwind_table_find(table, offset);
			struct witness witness;

			if (!witness_open(cfi, pc, &witness)) {
				if (row && row->rule != CFA_STOP)
					fail_msg("%s %#" PRIx64 " has no frame", name, pc);
				pc++;
				continue;
			}
			if (!row || unwind_table_find(table, (uint32_t)(witness.end - 1 -
									table->base)) != row)
				fail_msg("%s %#" PRIx64 ": not one row", name, pc);
			compare_rule(name, pc, row->rule, &witness, &tally);
			pc = witness.end;
			free(witness.frame);
		}
	}
	dwarf_cfi_end(cfi);
	print_message("%s: %zu rows; %" PRIu64 " rules of libdw's, %" PRIu64 " bytes, %" PRIu64
		      " inexpressible (%.3f %%), %u FDEs skipped\n",
		      name, table->count, tally.rules, tally.code_bytes, tally.stop_bytes,
		      100.0 * (double)tally.stop_bytes / (double)tally.code_bytes, table->skipped);
	return tally;
}

static inline struct unwind_table compile_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct unwind_table table;

	assert_true(fd >= 0);
	assert_int_equal(unwind_table_compile(fd, &table), 0);
	close(fd);
	return table;
}

static inline struct tally compare_file_with_libdw(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct unwind_table table = compile_file(path);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	struct tally tally;

	assert_non_null(elf);
	tally = compare_with_libdw(path, elf, &table);
	elf_end(elf);
	close(fd);
	unwind_table_free(&table);
	return tally;
}

#endif /* MEMTOLL_TESTS_UNWIND_WITNESS_H */
