/* SPDX-License-Identifier: GPL-2.0 */
/*
 * config.h: every knob that userspace sets before loading. Each names the flag or the check that
 * decides it. Defined in settings.bpf.c, extern everywhere else.
 */
#ifndef MEMTOLL_CONFIG_H
#define MEMTOLL_CONFIG_H

#include "sampling.h"

/* --min-size: blocks of at least so many bytes are followed one by one. */
extern const volatile __u64 cfg_min_size;

/* Base of the kernel's direct map, and levels of page tables (4 or 5): pagetable.c. */
extern const volatile __u64 cfg_page_offset;
extern const volatile __u32 cfg_page_levels;

/* Page frames of the shared zero page and the huge one; 0 where not found: pagetable.c. */
extern const volatile __u64 cfg_zero_pfn;
extern const volatile __u64 cfg_huge_zero_pfn;

/*
 * Sizes in which a fault may map anonymous memory at once, besides 4 KiB and huge pages: bit n is
 * 2^n pages (6.8 and later, kernel commit 19eaf44954df): pagetable.c.
 */
extern const volatile __u32 cfg_mthp_orders;

/* bpf_rdonly_cast() is there (6.2 and later, kernel commit a35b9af4ec2c): programs.c. */
extern const volatile bool cfg_casts;

/* bpf_find_vma() is there (5.17 and later, kernel commit 7c7e3d31e785): features.c. */
extern const volatile bool cfg_find_vma;

/*
 * mmap_lock's tracepoints have a cgroup's path before the kind of lock (6.12; no more in 6.18):
 * programs.c.
 */
extern const volatile bool cfg_lock_path;

/* No knob: false, as the verifier knows and the compiler does not: keep_off_private_stack(). */
extern const volatile bool cfg_never;

/* --sample: mean bytes between two chosen places of what a thread allocates; 0: none. */
extern const volatile __u64 cfg_sample;
/* Logarithms for the distances: sampled.c. */
extern const volatile __u32 cfg_sampling_log[SAMPLING_LOG_ENTRIES];

#endif /* MEMTOLL_CONFIG_H */
