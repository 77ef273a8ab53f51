/* SPDX-License-Identifier: GPL-2.0 */
/*
 * unwind_load.h: loads unwind tables into BPF maps: one for each module, shared by all processes
 * that map it, and one with the mappings of each process.
 */
#ifndef MEMTOLL_UNWIND_LOAD_H
#define MEMTOLL_UNWIND_LOAD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/maps.h"

struct memtoll_bpf;

/*
 * Kernel memory for rows and mappings together. A module whose table would exceed it is left out
 * and its frames are walked by frame pointers; loss unwind_full counts it.
 */
#define UNWIND_BYTES_MAX (256UL << 20)

/*
 * Before the programs are loaded: set the template of the map of tables. A descriptor that must
 * stay open until they are, or -errno.
 */
int unwinder_prepare(struct memtoll_bpf *bpf);

struct unwinder;

struct unwinder *unwinder_new(struct memtoll_bpf *bpf);
void unwinder_free(struct unwinder *unwinder);

/*
 * Load the process's executable mappings; call again when they changed. Number of its table
 * (memtoll_target.unwind_table), 0 where there is none. Where a table cannot hold all mappings,
 * some of each file come first.
 */
uint32_t unwinder_show(struct unwinder *unwinder, pid_t pid, const struct maps *maps);

/*
 * Rows of code that the process has made itself, in anonymous memory from base on; used from its
 * next unwinder_show() on, in place of those given before. Some times, at most: 0, or -errno.
 */
struct memtoll_unwind_row;
int unwinder_generated(struct unwinder *unwinder, pid_t pid, uint64_t base,
		       const struct memtoll_unwind_row *rows, size_t count);
/* It has ended, or runs another program. */
void unwinder_forget_generated(struct unwinder *unwinder, pid_t pid);

/* A child uses its parent's table until it is shown itself: the number of that table, or 0. */
uint32_t unwinder_fork(struct unwinder *unwinder, pid_t parent, pid_t child);
void unwinder_exit(struct unwinder *unwinder, pid_t pid);

/* Modules left out for want of memory since the last call. */
uint64_t unwinder_left_out(struct unwinder *unwinder);

#endif /* MEMTOLL_UNWIND_LOAD_H */
