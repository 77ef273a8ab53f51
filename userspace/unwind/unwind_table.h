/* SPDX-License-Identifier: GPL-2.0 */
/*
 * unwind_table.h: compiles .eh_frame of an x86-64 ELF file to the rows that bpf/stacks/unwind.bpf.c
 * walks stacks with (struct memtoll_unwind_row). Sources: System V ABI for x86-64, chapter 3.7 (CFI
 * and its registers); Linux Standard Base, chapter "Exception Frames"; DWARF 5, chapter 6.4.
 *
 * The file belongs to the traced process, so it is hostile: every offset is checked, sizes are
 * bounded before memory is allocated, and nothing is mapped (a truncated file raises SIGBUS).
 */
#ifndef MEMTOLL_UNWIND_TABLE_H
#define MEMTOLL_UNWIND_TABLE_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire/unwind_rows.h"

/* Most rows of one module, 64 MiB of them; libLLVM-14 has 950,000 for 50 MB of code. */
#define UNWIND_ROWS_MAX (8U << 20)

/*
 * Rows ascend strictly by pc; neighbours have different rules. The last one is CFA_STOP: it ends
 * the last function. Code without information between two functions is CFA_STOP too.
 */
struct unwind_table {
	struct memtoll_unwind_row *rows;
	size_t count;	  /* rows */
	uint64_t base;	  /* lowest address in the file; row pcs are relative to it */
	uint32_t skipped; /* FDEs left out: broken or inexpressible */
};

/*
 * Compile the file behind a descriptor, whose position is neither used nor changed. 0, or -ENOENT:
 * no .eh_frame; -ENOEXEC: no x86-64 ELF file; -EINVAL: broken; -ENOMEM; -E2BIG: more rows than
 * UNWIND_ROWS_MAX, or .eh_frame above 64 MiB; -errno of reading. base is the page of the first
 * PT_LOAD's p_vaddr. The table is empty after an error; what was in it before is overwritten, not
 * freed.
 */
int unwind_table_compile(int fd, struct unwind_table *table);

/* The same for an ELF image in memory, laid out as in a file: the vdso. */
int unwind_table_compile_memory(const void *image, size_t size, struct unwind_table *table);

/* May be called more than once, and on an empty table. */
void unwind_table_free(struct unwind_table *table);

/* The row that holds at pc (relative to base), or NULL before the first. */
const struct memtoll_unwind_row *unwind_table_find(const struct unwind_table *table, uint32_t pc);

#endif /* MEMTOLL_UNWIND_TABLE_H */
