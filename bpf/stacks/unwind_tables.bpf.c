// SPDX-License-Identifier: GPL-2.0
/*
 * unwind_tables.bpf.c: which mapping an address is in, and which rule holds there. Userspace
 * compiles .eh_frame into tables (wire/unwind_rows.h) and lists each process's code.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/unwind_rows.h"
#include "stacks/unwind.bpf.h"

struct unwind_tables_map unwind_tables SEC(".maps");

/*
 * The largest of `entries` sorted values, a power of two of them, that is not above `wanted`: its
 * index. Without a branch, or the verifier would follow both ways at every step. stride: bytes from
 * one to the next, the value first.
 */
#define BISECT(at, entries, wanted, value_of)                                              \
	do {                                                                               \
		__u32 step_;                                                               \
                                                                                           \
		at = 0;                                                                    \
		for (step_ = (entries) / 2; step_; step_ /= 2) {                           \
			__u64 probe_ = at + step_;                                         \
			__s64 above_;                                                      \
                                                                                           \
			/* The compiler knows that it is in bounds, 6.1's verifier not. */ \
			barrier_var(probe_);                                               \
			probe_ &= (entries)-1;                                             \
			above_ = (__s64)((__u64)value_of(probe_) - (wanted)-1);            \
			at += step_ & (__u32)(above_ >> 63);                               \
		}                                                                          \
		barrier_var(at);                                                           \
		at &= (entries)-1;                                                         \
	} while (0)

/*
 * A cache of rules. Some hundred call sites are behind nearly all walks, and where the program has
 * evicted the tables from the CPU caches, bisecting for a rule is eight misses. An entry is one
 * word, pc and rule, and so is consistent whoever writes it; its slot together with pc determines
 * the table, as each of the UNWIND_TABLES slots is for one table at a given pc. A module keeps its
 * table for good (unwind_load.c), and the rows in it never change.
 */
static __u64 rules_known[UNWIND_TABLES];

static __always_inline __u64 *rule_place(__u32 table_id, __u32 pc)
{
	__u64 at = ((pc * 0x9e3779b1U) >> 20) + table_id;

	barrier_var(at);
	return &rules_known[at & (UNWIND_TABLES - 1)];
}

static __always_inline __u32 rule_bisect(__u32 table_id, __u32 pc)
{
	struct unwind_chunk *chunk;
	__u32 at, number = 0;
	void *table;

	table = bpf_map_lookup_elem(&unwind_tables, &table_id);
	if (!table)
		return 0;
	chunk = bpf_map_lookup_elem(table, &number);
	if (!chunk)
		return 0;
#define FIRST_PC(i) chunk->index[i]
	BISECT(at, UNWIND_INDEX_ENTRIES, pc, FIRST_PC);
	if (chunk->index[at] > pc)
		return 0;
	number = at + 1;
	chunk = bpf_map_lookup_elem(table, &number);
	if (!chunk)
		return 0;
#define ROW_PC(i) chunk->rows[i].pc
	BISECT(at, UNWIND_CHUNK_ROWS, pc, ROW_PC);
	return chunk->rows[at].rule;
}

/* The rule that holds at pc of a module. 0: none. */
__u32 unwind_rule(__u32 table_id, __u32 pc)
{
	volatile __u64 *place = rule_place(table_id, pc);
	__u64 word = *place;
	__u32 rule;

	if (word && word >> 32 == pc)
		return word;
	rule = rule_bisect(table_id, pc);
	if (rule)
		*place = (__u64)pc << 32 | rule;
	return rule;
}

/* Find the mapping of an address into the walk. 0: there is none. */
int unwind_mapping(struct unwind *walk, __u64 address)
{
	struct memtoll_unwind_mapping *mapping;
	struct unwind_chunk *chunk, *next;
	__u32 at, number = 0, i;
	void *table;

	if (!walk)
		return 0;
	at = walk->process_table;
	table = bpf_map_lookup_elem(&unwind_tables, &at);
	if (!table)
		return 0;
	chunk = bpf_map_lookup_elem(table, &number);
	if (!chunk)
		return 0;
	for (i = 1; i < UNWIND_MAPPING_CHUNKS; i++) {
		number = i;
		next = bpf_map_lookup_elem(table, &number);
		if (!next || next->mappings[0].start > address)
			break;
		chunk = next;
	}
/* Of unused entries all bits are set: they must not come out negative. */
#define MAPPING_START(i) (chunk->mappings[i].start & (~0ULL >> 1))
	BISECT(at, UNWIND_CHUNK_MAPPINGS, address, MAPPING_START);
	mapping = &chunk->mappings[at];
	if (address < mapping->start || address >= mapping->end)
		return 0;
	walk->start = mapping->start;
	walk->end = mapping->end;
	walk->bias = mapping->bias;
	walk->table = mapping->table;
	return 1;
}
