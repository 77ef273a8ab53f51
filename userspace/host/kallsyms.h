/* SPDX-License-Identifier: GPL-2.0 */
/* kallsyms.h: addresses of kernel functions by name, from /proc/kallsyms (proc(5)). */
#ifndef MEMTOLL_KALLSYMS_H
#define MEMTOLL_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_function {
	const char *name;
	uint64_t start; /* 0 where the table has none of this name, or hides it */
	uint64_t end;
	bool in_module;
};

/*
 * Look functions up in a table in the format of /proc/kallsyms; path NULL means that file. The
 * kernel's own goes before a module's, the first where several static functions share a name.
 * None is found where the file cannot be opened, or hides addresses (kernel.kptr_restrict).
 */
void kallsyms_find(const char *path, struct kernel_function *functions, size_t count);

/*
 * The same, but what an earlier run has found during this boot is taken from the cache
 * (boot_cache.h), since the kernel prints the whole table for each reader. Nothing is kept where no
 * name was found, as all may be hidden, or one is a module's, which may go and come.
 */
void kallsyms_find_once(const char *path, struct kernel_function *functions, size_t count);

#endif /* MEMTOLL_KALLSYMS_H */
