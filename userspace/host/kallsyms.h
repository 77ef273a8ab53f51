/* SPDX-License-Identifier: GPL-2.0 */
/* kallsyms.h: addresses of kernel functions by name, from /proc/kallsyms (proc(5)). */
#ifndef MEMTOLL_KALLSYMS_H
#define MEMTOLL_KALLSYMS_H

#include <stdbool.h>
#include <stdint.h>

struct kallsyms;

/*
 * Read a table in the format of /proc/kallsyms; path NULL means that file. NULL when it cannot be
 * opened. A table whose addresses are hidden (kernel.kptr_restrict) is empty.
 */
struct kallsyms *kallsyms_read(const char *path);
void kallsyms_free(struct kallsyms *table);

/*
 * Start and end of the function called name; the kernel's own before a module's, the first where
 * several static functions share it. False where the table has none.
 */
bool kallsyms_function(const struct kallsyms *table, const char *name, uint64_t *start,
		       uint64_t *end);

#endif /* MEMTOLL_KALLSYMS_H */
