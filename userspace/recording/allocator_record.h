/* SPDX-License-Identifier: GPL-2.0 */
/* allocator_record.h: what is known of a process's allocator, written into the recording. */
#ifndef MEMTOLL_ALLOCATOR_RECORD_H
#define MEMTOLL_ALLOCATOR_RECORD_H

#include <sys/types.h>

#include "allocators/modules.h"
#include "ledger/thresholds.h"
#include "recording/recording.h"

/*
 * Settings of allocators in the environment that the process started with, "NAME=VALUE" with blanks
 * between: GLIBC_TUNABLES, MALLOC_* (glibc's older names, and jemalloc's MALLOC_CONF), TCMALLOC_*,
 * MIMALLOC_*. "" if there are none or they cannot be read. Freed by the caller.
 */
char *tunables_read(pid_t pid);

/*
 * Replaces what was written of it before. unprobed: why none of its functions is probed, or NULL.
 * threshold: mmap_threshold. tunables may be NULL. 0 or -errno.
 */
int allocator_record(struct recording *recording, pid_t pid, const struct allocator_module *module,
		     enum allocator_linkage linkage, const char *unprobed,
		     const struct bounds *threshold, bool pinned, const char *tunables);

#endif /* MEMTOLL_ALLOCATOR_RECORD_H */
