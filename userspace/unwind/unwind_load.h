/* SPDX-License-Identifier: GPL-2.0 */
/*
 * unwind_load.h: unwind tables into the kernel: one of each module, shared by all processes that
 * map it, and one of each process's mappings.
 */
#ifndef MEMTOLL_UNWIND_LOAD_H
#define MEMTOLL_UNWIND_LOAD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/maps.h"

struct memtoll_bpf;

/*
 * Kernel memory for rows and mappings together. A module whose table would go beyond is left out,
 * and its frames are walked by frame pointers; loss unwind_full counts it.
 */
#define UNWIND_BYTES_MAX (256UL << 20)

/*
 * Before the programs are loaded: what the tables are made of. A descriptor that must stay open
 * until then, or -errno.
 */
int unwinder_prepare(struct memtoll_bpf *bpf);

struct unwinder;

struct unwinder *unwinder_new(struct memtoll_bpf *bpf);
void unwinder_free(struct unwinder *unwinder);

/*
 * Take note of the code that a process maps now; again when that changed. The number of its table
 * (memtoll_target.unwind_table), 0 where there is none. Of more code than a table holds, some of
 * each file comes first.
 */
uint32_t unwinder_show(struct unwinder *unwinder, pid_t pid, const struct maps *maps);

/* A child has its parent's mappings until it is shown itself: the number of its table, or 0. */
uint32_t unwinder_fork(struct unwinder *unwinder, pid_t parent, pid_t child);
void unwinder_exit(struct unwinder *unwinder, pid_t pid);

/* Modules left out for want of memory since the last call. */
uint64_t unwinder_left_out(struct unwinder *unwinder);

#endif /* MEMTOLL_UNWIND_LOAD_H */
