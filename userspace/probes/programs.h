/* SPDX-License-Identifier: GPL-2.0 */
/* programs.h: which BPF programs a run needs, and their knobs. */
#ifndef MEMTOLL_PROGRAMS_H
#define MEMTOLL_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "host/pagetable.h"
#include "probes/attach.h"

struct memtoll_bpf;

struct programs_config {
	const struct pagetable *pagetable;
	enum uprobe_mechanism mechanism;
	uint64_t min_size;
	uint64_t sample; /* mean bytes, 0: none */
	uint64_t buffer_bytes;
	uint32_t stacks; /* that there may be; 0: as many as usual, and as many rows */
	bool uprobes;
	bool faults;
	bool mappings;
	bool samples;
	bool reads;
	bool swap; /* what follows swap though none is on, to see whether it loads */
};

/* bpf_find_vma(): 5.17, kernel commit 7c7e3d31e785. */
bool has_find_vma(void);

/* rss_stat fires at every change: 6.2, kernel commit f1a7941243c1. */
bool has_exact_rss_stat(void);

/* Tracepoint count_memcg_events, which says where each page came from: 6.14. */
bool has_memcg_events(void);

/* Tracepoints of all system calls, of what io_uring has done, of pages added to the page cache. */
bool has_syscall_tracepoints(void);
bool has_uring_tracepoint(void);
bool has_page_cache_tracepoint(void);

/* Functions that tell what memory.stat does: 7.0 and later. */
bool has_memory_kfuncs(void);

/* A tracepoint of reads that look into the page cache: 6.12 and later. */
bool has_page_cache_lookups(void);
/* Tracepoints report mapping calls, and reads past the page cache too, while none is watched. */
bool has_unwatched_tracepoints(void);

/*
 * Open, choose and load. NULL with errno set; in *refused the name of a program that the kernel
 * refuses by itself, or NULL.
 */
struct memtoll_bpf *programs_load(const struct programs_config *config, const char **refused);

/*
 * What follows swap was left out, as none was on, and of what the verifier has to look at it is a
 * tenth: it is loaded now, with the maps of the others. NULL with errno set. The caller's to attach
 * what this kernel has tracepoints for, and then to destroy it all: links keep programs.
 */
struct memtoll_bpf *programs_load_swap(const struct memtoll_bpf *bpf);

/* Likewise what sees mapping calls by their lock: map_lock.h. */
struct memtoll_bpf *programs_load_map_lock(const struct memtoll_bpf *bpf);

/* And what sees a userfaultfd's handler wake those that wait for it: few programs have one. */
struct memtoll_bpf *programs_load_handlers(const struct memtoll_bpf *bpf);

#endif /* MEMTOLL_PROGRAMS_H */
