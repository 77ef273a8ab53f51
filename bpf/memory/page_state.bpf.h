/* SPDX-License-Identifier: GPL-2.0 */
/* page_state.bpf.h: the page tables, areas and files of the running process. */
#ifndef MEMTOLL_PAGE_STATE_BPF_H
#define MEMTOLL_PAGE_STATE_BPF_H

#include "vmlinux.h"

#include "state/fault_order.bpf.h"
#include "state/open_fault.bpf.h"

/* A thread's stack with its thread control block on top is not larger than this. */
#define THREAD_STACK_MAX (256ULL << 20)

/* include/uapi/linux/magic.h: file systems of memory. */
#define TMPFS_SUPER_MAGIC 0x01021994UL
#define HUGETLBFS_SUPER_MAGIC 0x958458f6UL

/*
 * Of the running task: its mm as a number, 0: none; which process it is of, as thread_owner() has
 * that; bounds of its heap; its first stack.
 */
__u64 current_mm(void);
__u64 current_leader(void);
__u64 current_heap(void);
__u64 current_heap_top(void);
__u64 current_stack(void);
/* The struct file of a descriptor as a number, 0 where there is none. */
__u64 current_file(__u32 fd);
/* Whether the last table of a walk is still where it was, and its entry for the address empty. */
int slot_is_empty(__u64 table, __u64 table_at, __u64 address);
/* What a file's page cache has of a page. */
enum cached { CACHED_UNKNOWN, CACHED_NOTHING, CACHED_FOLIO, CACHED_VALUE };
int page_cache_find(__u64 mapping, __u64 index, __u64 *found);
__u64 table_root(void);
int walk_tables(struct walked *walked, __u64 root, __u64 address);
int look_around(struct open_fault *fault, int end, __u64 area_start);
__u64 fault_result(struct open_fault *fault, __u64 area_start, __u64 area_end);
__u64 vma_find(__u64 address);
int direct_word_find(struct direct_word *word, __u64 root, __u64 address);
int python_top_is_same(const struct sweep_place *place);

#endif /* MEMTOLL_PAGE_STATE_BPF_H */
