/* SPDX-License-Identifier: GPL-2.0 */
/* memory_kfuncs.h: the figures of a memory cgroup by functions of the kernel's, Linux 7.0 and later. */
#ifndef MEMTOLL_MEMORY_KFUNCS_H
#define MEMTOLL_MEMORY_KFUNCS_H

#include <stdbool.h>

#include "bpf/wire/memory_figures.h"

struct memory_kfuncs;

/* NULL where the kernel has none, or refuses the program. */
struct memory_kfuncs *memory_kfuncs_open(void);
void memory_kfuncs_close(struct memory_kfuncs *kfuncs);

/* directory: of a cgroup of version 2. False: it is none, or gone, or has no memory accounted. */
bool memory_kfuncs_read(const struct memory_kfuncs *kfuncs, const char *directory,
			struct memory_figures *figures);

#endif /* MEMTOLL_MEMORY_KFUNCS_H */
