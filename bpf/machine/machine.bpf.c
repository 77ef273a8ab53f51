// SPDX-License-Identifier: GPL-2.0
/*
 * machine.bpf.c: what memory costs on the whole machine, for `memtoll top` without a target. By
 * tracepoints alone, and sums alone: who has pages cleared, who waits for pages, who reclaims, and
 * whose pages are pushed out by whom. An object of its own, so that it is loaded in no time.
 *
 * What fires often, page_allocated and fault_began, is attached a part of the time only, where it
 * would cost too much (userspace/top/top_machine.c).
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "wire/machine.h"
#include "probes/dropped.bpf.h"
#include "probes/page_cache.bpf.h"
#include "probes/syscall.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* include/linux/gfp_types.h; the same from 6.1 to 6.18. */
#define GFP_MOVABLE 0x8u
#define GFP_ZERO 0x100u
#define GFP_NOMEMALLOC 0x80000u
#define PF_KTHREAD_FLAG 0x00200000
#define MEMCG_DATA_FLAGS 7UL
#define HUGE_ORDER_LEAST 2
#define NODES 64
#define THREADS 16384 /* a power of two */
#define PAGES_MOST 16 /* of a folio, that are looked for one by one */

/* Not "processes", by which one memtoll knows whom another one traces (host/other_tracers.c). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct machine_process);
} payers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MACHINE_GROUPS_MOST);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct machine_group);
} groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MACHINE_PUSHES_MOST);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct machine_push_key);
	__type(value, struct machine_push);
} pushes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MACHINE_COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

/* Pages of files that were thrown out, until they are brought in again or the room is wanted. */
struct thrown_page {
	__u64 inode;
	__u64 index;
	__u64 dev;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct thrown_page);
	__type(value, struct machine_push_key);
} thrown SEC(".maps");

/* A page of a file that a fault brought in; one of others is on swap. */
enum file_page {
	NO_FILES,
	NEVER_THROWN, /* or too long ago: nobody's push is what it waits for */
	WAS_THROWN,
};

/* A thread that is in a fault: two with one place take it from each other, and are not timed. */
struct thread_fault {
	__u64 began_ns;
	__u32 thread;
	__u16 of_file; /* enum file_page */
	__u16 epoch;   /* watch_epoch as of then: else it is of an earlier fault */
};

/* Odd: fault_began is attached. One more with each change. */
volatile __u16 watch_epoch = 0;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, THREADS);
	__type(key, __u32);
	__type(value, struct thread_fault);
} faults SEC(".maps");

/* When a thread began to reclaim. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} reclaims SEC(".maps");

/* By node: whose allocation woke kswapd last. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NODES);
	__type(key, __u32);
	__type(value, __u64);
} wakers SEC(".maps");

static __always_inline void count(__u32 which)
{
	__u64 *value = bpf_map_lookup_elem(&counts, &which);

	if (value)
		++*value;
}

/* The memory cgroup that the task is in; 0 where there are none. */
static __always_inline __u64 group_of(struct task_struct *task)
{
	struct cgroup_subsys_state *css = NULL;
	struct css_set *set;

	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
		return 0;
	set = BPF_CORE_READ(task, cgroups);
	bpf_core_read(&css, sizeof(css),
		      &set->subsys[bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id)]);
	return css ? BPF_CORE_READ(css, cgroup, kn, id) : 0;
}

/* That a page is accounted to; 0: none. */
static __always_inline __u64 group_of_folio(struct folio *folio)
{
	struct mem_cgroup *group;

	if (!bpf_core_field_exists(folio->memcg_data))
		return 0;
	group = (void *)(BPF_CORE_READ(folio, memcg_data) & ~MEMCG_DATA_FLAGS);
	return group ? BPF_CORE_READ(group, css.cgroup, kn, id) : 0;
}

static __always_inline struct machine_process *process_of(struct task_struct *task)
{
	struct machine_process *process, fresh = {};
	__u32 tgid = task->tgid;

	process = bpf_map_lookup_elem(&payers, &tgid);
	if (process)
		return process;
	fresh.born_ns = bpf_ktime_get_ns();
	fresh.group = group_of(task);
	BPF_CORE_READ_INTO(&fresh.comm, task, group_leader, comm);
	bpf_map_update_elem(&payers, &tgid, &fresh, BPF_NOEXIST);
	process = bpf_map_lookup_elem(&payers, &tgid);
	if (!process)
		count(MACHINE_PROCESSES_FULL);
	return process;
}

static __always_inline struct machine_group *group_row(__u64 number)
{
	static const struct machine_group zero;
	struct machine_group *group = bpf_map_lookup_elem(&groups, &number);

	if (group)
		return group;
	bpf_map_update_elem(&groups, &number, &zero, BPF_NOEXIST);
	group = bpf_map_lookup_elem(&groups, &number);
	if (!group)
		count(MACHINE_GROUPS_FULL);
	return group;
}

static __always_inline struct machine_push *push_row(const struct machine_push_key *key)
{
	static const struct machine_push zero;
	struct machine_push *push = bpf_map_lookup_elem(&pushes, key);

	if (push)
		return push;
	bpf_map_update_elem(&pushes, key, &zero, BPF_NOEXIST);
	push = bpf_map_lookup_elem(&pushes, key);
	if (!push)
		count(MACHINE_GROUPS_FULL);
	return push;
}

/* Its row may be older than its name. */
SEC("raw_tp/sched_process_exec")
int process_execs(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = task->tgid;
	struct machine_process *process = bpf_map_lookup_elem(&payers, &tgid);

	if (process)
		BPF_CORE_READ_INTO(&process->comm, task, group_leader, comm);
	return 0;
}

/*
 * A page for user memory that the kernel clears: a small one is cleared by who allocates it, a huge
 * one by the fault that asked for it, and is known by what it may not take (GFP_TRANSHUGE_LIGHT).
 */
SEC("raw_tp/mm_page_alloc")
int page_allocated(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 order = ctx->args[1], flags = ctx->args[2];
	struct machine_process *process;
	struct task_struct *task;
	bool huge;

	count(MACHINE_HIT_PAGE);
	huge = order >= HUGE_ORDER_LEAST && flags & GFP_NOMEMALLOC;
	if (!ctx->args[0] || !(flags & GFP_MOVABLE) || !(flags & GFP_ZERO || huge))
		return 0;
	task = bpf_get_current_task_btf();
	if (task->flags & PF_KTHREAD_FLAG)
		return 0;
	process = process_of(task);
	if (!process)
		return 0;
	__sync_fetch_and_add(&process->zeroed_pages, 1ULL << (order & 31));
	if (huge)
		__sync_fetch_and_add(&process->huge_pages, 1ULL << (order & 31));
	return 0;
}

static __always_inline struct thread_fault *fault_place(__u32 thread)
{
	__u32 place = thread & (THREADS - 1);

	return bpf_map_lookup_elem(&faults, &place);
}

static __always_inline bool is_of(const struct thread_fault *fault, __u32 thread)
{
	return fault->thread == thread && fault->epoch == watch_epoch;
}

/* In a fault whose begin is not watched just now; of those in system calls nothing is known. */
static __always_inline bool in_unwatched_fault(struct task_struct *task)
{
	return !(watch_epoch & 1) && syscall_nr((const struct pt_regs *)bpf_task_pt_regs(task)) < 0;
}

/* The one that it is in; NULL: none, as in read(2), or not known. */
static __always_inline struct thread_fault *fault_of(struct task_struct *task)
{
	struct thread_fault *fault = fault_place(task->pid);

	if (!fault)
		return NULL;
	if (watch_epoch & 1)
		return is_of(fault, task->pid) ? fault : NULL;
	if (!in_unwatched_fault(task))
		return NULL;
	if (is_of(fault, task->pid))
		return fault;
	fault->thread = task->pid;
	fault->epoch = watch_epoch;
	fault->began_ns = 0;
	fault->of_file = NO_FILES;
	return fault;
}

/* At page_fault_user and page_fault_kernel. */
SEC("raw_tp")
int fault_began(void *ctx)
{
	__u32 thread = bpf_get_current_pid_tgid();
	struct thread_fault *fault = fault_place(thread);

	count(MACHINE_HIT_FAULT);
	if (!fault)
		return 0;
	fault->thread = thread;
	fault->of_file = NO_FILES;
	fault->epoch = watch_epoch;
	fault->began_ns = bpf_ktime_get_ns();
	return 0;
}

/* It asks for a page on disk: where the begin of faults is not watched, it waits from here on. */
SEC("raw_tp/block_bio_queue")
int page_asked_for(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_fault *fault;

	count(MACHINE_HIT_OTHER);
	if (task->flags & PF_KTHREAD_FLAG || watch_epoch & 1)
		return 0;
	fault = fault_of(task);
	if (fault)
		fault->began_ns = bpf_ktime_get_ns();
	return 0;
}

/* Major ones alone. One that brought a page of a file into the page cache waited for that. */
SEC("perf_event")
int fault_ended(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_fault *fault = fault_place(task->pid);
	struct machine_process *process = process_of(task);
	struct machine_group *group = group_row(group_of(task));
	bool known = fault && is_of(fault, task->pid);
	__u64 waited_ns = 0;

	count(MACHINE_HIT_MAJOR);
	if (known && fault->began_ns)
		waited_ns = bpf_ktime_get_ns() - fault->began_ns;
	if (process && known && fault->of_file)
		__sync_fetch_and_add(&process->file_faults, 1);
	else if (process)
		__sync_fetch_and_add(&process->swap_faults, 1);
	if (process && waited_ns) {
		__sync_fetch_and_add(&process->timed_faults, 1);
		__sync_fetch_and_add(&process->waited_ns, waited_ns);
	}
	if (group && !(known && fault->of_file == NEVER_THROWN)) {
		__sync_fetch_and_add(&group->faults, 1);
		__sync_fetch_and_add(&group->timed_faults, waited_ns ? 1 : 0);
		__sync_fetch_and_add(&group->waited_ns, waited_ns);
	}
	if (known)
		fault->began_ns = fault->of_file = 0;
	return 0;
}

static __always_inline int reclaim_began(void)
{
	__u32 thread = bpf_get_current_pid_tgid();
	__u64 now = bpf_ktime_get_ns();

	count(MACHINE_HIT_OTHER);
	bpf_map_update_elem(&reclaims, &thread, &now, BPF_ANY);
	return 0;
}

SEC("raw_tp/mm_vmscan_direct_reclaim_begin")
int direct_began(void *ctx)
{
	return reclaim_began();
}

SEC("raw_tp/mm_vmscan_memcg_reclaim_begin")
int memcg_began(void *ctx)
{
	return reclaim_began();
}

/* At the end of both. */
SEC("raw_tp")
int reclaim_ended(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 thread = task->pid;
	__u64 *began = bpf_map_lookup_elem(&reclaims, &thread);
	struct machine_process *process;

	count(MACHINE_HIT_OTHER);
	if (!began)
		return 0;
	process = process_of(task);
	if (process) {
		__sync_fetch_and_add(&process->reclaims, 1);
		__sync_fetch_and_add(&process->reclaim_ns, bpf_ktime_get_ns() - *began);
	}
	bpf_map_delete_elem(&reclaims, &thread);
	return 0;
}

/* In the context of whoever finds too little memory free, where kswapd is asleep. */
SEC("raw_tp/mm_vmscan_wakeup_kswapd")
int kswapd_woken(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 node = ctx->args[0];
	__u64 *waker = bpf_map_lookup_elem(&wakers, &node);

	count(MACHINE_HIT_OTHER);
	if (waker)
		*waker = group_of(bpf_get_current_task_btf());
	return 0;
}

/* Who pushes: of kswapd it is whoever woke it, on the node that a virtual machine mostly has alone. */
static __always_inline void name_pusher(struct task_struct *task, struct machine_push_key *key)
{
	__u32 node = 0, tens, ones;
	__u64 *waker;

	if (!(task->flags & PF_KSWAPD_FLAG)) {
		key->pusher = group_of(task);
		return;
	}
	key->by_kswapd = 1;
	/* "kswapd0", "kswapd12": its node is what its name ends with. */
	tens = (__u8)task->comm[6] - '0';
	ones = (__u8)task->comm[7] - '0';
	if (tens <= 9)
		node = ones <= 9 ? 10 * tens + ones : tens;
	waker = bpf_map_lookup_elem(&wakers, &node);
	key->pusher = waker ? *waker : 0;
}

static __always_inline void pushed(struct task_struct *task, const struct machine_push_key *key,
				   __u64 swap_pages, __u64 file_pages)
{
	struct machine_push *push = push_row(key);
	struct machine_process *process = process_of(task);

	if (push) {
		__sync_fetch_and_add(&push->swap_pages, swap_pages);
		__sync_fetch_and_add(&push->file_pages, file_pages);
	}
	if (process)
		__sync_fetch_and_add(&process->pushed_pages, swap_pages + file_pages);
}

/* Reclaim has written a page: to swap, as files are written by others (since 6.17, or mostly). */
SEC("raw_tp/mm_vmscan_write_folio")
int page_written(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct folio *folio = (struct folio *)ctx->args[0];
	struct machine_push_key key = {};

	count(MACHINE_HIT_OTHER);
	name_pusher(task, &key);
	key.victim = group_of_folio(folio);
	pushed(task, &key, pages_of_folio(folio), 0);
	return 0;
}

static __always_inline void name_page(struct folio *folio, struct thrown_page *page)
{
	struct inode *inode = BPF_CORE_READ(folio, mapping, host);

	page->inode = BPF_CORE_READ(inode, i_ino);
	page->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	page->index = BPF_CORE_READ(folio, index);
}

/* A page of a file leaves the page cache: by reclaim alone. Of large ones, not all are kept. */
SEC("raw_tp/mm_filemap_delete_from_page_cache")
int page_thrown_out(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct folio *folio = (struct folio *)ctx->args[0];
	struct machine_push_key key = {};
	struct thrown_page page = {};
	__u64 pages;
	int i;

	count(MACHINE_HIT_OTHER);
	if (!(task->flags & (PF_MEMALLOC_FLAG | PF_KSWAPD_FLAG)))
		return 0;
	name_pusher(task, &key);
	key.victim = group_of_folio(folio);
	pages = pages_of_folio(folio);
	name_page(folio, &page);
	for (i = 0; i < PAGES_MOST && (__u64)i < pages; i++, page.index++)
		bpf_map_update_elem(&thrown, &page, &key, BPF_ANY);
	pushed(task, &key, 0, pages);
	return 0;
}

SEC("raw_tp/mm_filemap_add_to_page_cache")
int page_brought_in(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct folio *folio = (struct folio *)ctx->args[0];
	struct thread_fault *fault = fault_of(task);
	struct machine_push_key *known, key = {};
	struct machine_process *process;
	struct machine_push *push;
	struct thrown_page page = {};
	__u64 pages = pages_of_folio(folio), back = 0;
	int i;

	count(MACHINE_HIT_OTHER);
	if (fault && fault->of_file == NO_FILES)
		fault->of_file = NEVER_THROWN;
	name_page(folio, &page);
	for (i = 0; i < PAGES_MOST && (__u64)i < pages; i++, page.index++) {
		known = bpf_map_lookup_elem(&thrown, &page);
		if (!known)
			continue;
		key = *known;
		bpf_map_delete_elem(&thrown, &page);
		back++;
	}
	if (!back)
		return 0;
	if (fault)
		fault->of_file = WAS_THROWN;
	push = push_row(&key);
	if (push)
		__sync_fetch_and_add(&push->back_pages, back);
	process = process_of(task);
	if (process)
		__sync_fetch_and_add(&process->refaulted_pages, back);
	return 0;
}
