/* SPDX-License-Identifier: GPL-2.0 */
/*
 * glibc_params.h: parameters of glibc's allocator, read from a process's memory: struct malloc_par
 * mp_ (malloc/malloc.c). In all versions its first fields are trim_threshold, top_pad and
 * mmap_threshold.
 */
#ifndef MEMTOLL_GLIBC_PARAMS_H
#define MEMTOLL_GLIBC_PARAMS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "allocators/threshold_names.h"
#include "host/proc.h"

/*
 * The address of mp_ in the process, of the libc (or static program) behind an executable mapping.
 * By the symbol, where the file or its debug file has one; else by its initial values in the file:
 * three times 128 KiB, arena_test 8, and n_mmaps_max 65536 a little further, which must be in
 * exactly one place. False: not found.
 */
bool malloc_par_find(pid_t pid, const struct mapping *mapping, uint64_t *address);

/*
 * The values, by enum threshold_name. False: not readable. pinned: whether they move no more, as a
 * tunable or mallopt(3) has set one of them; left alone where that is not known.
 */
bool malloc_par_read(pid_t pid, uint64_t address, uint64_t values[THRESHOLD_NAMES], bool *pinned);

#endif /* MEMTOLL_GLIBC_PARAMS_H */
