/* SPDX-License-Identifier: GPL-2.0 */
/* kallsyms.h: the kernel's own symbol table, /proc/kallsyms (Documentation: proc(5)). */
#ifndef MEMTOLL_KALLSYMS_H
#define MEMTOLL_KALLSYMS_H

#include <stdbool.h>
#include <stdint.h>

struct kallsyms;

struct kernel_symbol {
	const char *name;
	const char *module;	/* "[kernel]", or "[name]" of the module; lives as the table does */
	uint64_t start;
	uint64_t end;		/* start of whatever symbol follows */
};

/*
 * Read a table in the format of /proc/kallsyms; path NULL means that file. NULL when it cannot be
 * read or memory is short. A table whose addresses are hidden (kernel.kptr_restrict) is empty.
 */
struct kallsyms *kallsyms_read(const char *path);
void kallsyms_free(struct kallsyms *table);

/* The function that holds address. False where there is none. */
bool kallsyms_find(const struct kallsyms *table, uint64_t address, struct kernel_symbol *symbol);

/*
 * The function called name; the kernel's own before a module's, the first where several static
 * functions share it. False where the table has none.
 */
bool kallsyms_named(const struct kallsyms *table, const char *name, struct kernel_symbol *symbol);

#endif /* MEMTOLL_KALLSYMS_H */
