/* SPDX-License-Identifier: GPL-2.0 */
/* memory_files.h: what the files of a memory cgroup say of it, of version 1 or 2. */
#ifndef MEMTOLL_MEMORY_FILES_H
#define MEMTOLL_MEMORY_FILES_H

#include <stdbool.h>

#include "bpf/wire/memory_figures.h"

/* As the kernel has it: "anon", "workingset_refault_file", "oom_kill"; "usage". */
const char *memory_figure_name(enum memory_figure figure);

/* False where none of them can be read; -1: it is not told. */
bool memory_files_read(const char *directory, struct memory_figures *figures);

/* All unknown. */
void memory_figures_clear(struct memory_figures *figures);

#endif /* MEMTOLL_MEMORY_FILES_H */
