/* SPDX-License-Identifier: GPL-2.0 */
/* kallsyms.h: addresses of kernel functions by name, from /proc/kallsyms (proc(5)). */
#ifndef MEMTOLL_KALLSYMS_H
#define MEMTOLL_KALLSYMS_H

#include <stddef.h>
#include <stdint.h>

struct kernel_function {
	const char *name;
	uint64_t start; /* 0 where the table has none of this name, or hides it */
	uint64_t end;
};

/*
 * Look functions up in a table in the format of /proc/kallsyms; path NULL means that file. The
 * kernel's own goes before a module's, the first where several static functions share a name.
 * None is found where the file cannot be opened, or hides addresses (kernel.kptr_restrict).
 */
void kallsyms_find(const char *path, struct kernel_function *functions, size_t count);

#endif /* MEMTOLL_KALLSYMS_H */
