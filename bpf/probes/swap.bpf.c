// SPDX-License-Identifier: GPL-2.0
/*
 * swap.bpf.c: the stall of reclaim, pages pushed out to swap, and pages that appear unasked.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "wire/sums.h"
#include "state/losses.bpf.h"
#include "state/processes.bpf.h"
#include "state/row.bpf.h"
#include "state/settings.bpf.h"
#include "state/stamp.bpf.h"
#include "state/threads.bpf.h"
#include "memory/page_state.bpf.h"
#include "stacks/call_stack.bpf.h"
#include "stacks/memo.bpf.h"
#include "probes/dropped.bpf.h"
#include "probes/page_cache.bpf.h"
#include "probes/syscall.bpf.h"

SUM_TABLE(swaps, 16384, 512, struct memtoll_swap_key, struct memtoll_swap_sum);

/*
 * Of a thread that reclaims: out of which process's page tables it has last taken a page of shared
 * memory. It writes the page to swap next, and then the page is nobody's any more.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} unmapped_from SEC(".maps");

static __always_inline void swap_add(const struct memtoll_swap_key *key, __u64 pages, __u64 cpu_ns,
				     __u64 blocked_ns)
{
	static const struct memtoll_swap_sum zero;
	struct memtoll_swap_sum *sum = row_get(&swaps, &swaps_shared, key, &zero);

	if (!sum) {
		lose(LOST_SWAPS_FULL, pages ? pages : 1);
		return;
	}
	__sync_fetch_and_add(&sum->count, 1);
	__sync_fetch_and_add(&sum->pages, pages);
	__sync_fetch_and_add(&sum->cpu_ns, cpu_ns);
	__sync_fetch_and_add(&sum->blocked_ns, blocked_ns);
}

static __always_inline void swap_count(__u32 tgid, __u32 what, __u64 pages)
{
	const struct memtoll_swap_key key = { .tgid = tgid, .what = what };

	swap_add(&key, pages, 0, 0);
}

static __always_inline int reclaim_begin(__u32 what)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_get(task);

	if (!thread)
		return 0;
	thread->reclaiming = what;
	stamp_take(task, &thread->reclaim);
	return 0;
}

/* Of a system call the caller is on top of the stack, where its instruction has no frame. */
static __always_inline __u64 stack_of_stall(struct task_struct *task, struct thread *thread)
{
	const struct pt_regs *regs = (const struct pt_regs *)bpf_task_pt_regs(task);

	if (syscall_nr(regs) < 0 && thread->fault.active)
		return thread->fault.stack_id;
	if (thread->in_fn)
		return stack_from_call(thread);
	return memo_stack(thread, regs, true);
}

/*
 * The stall is taken out of the fault, the allocator call and the mapping call it happened in, and
 * has their stack. One program at both tracepoints, direct reclaim's and memory cgroups' (attach.c).
 */
SEC("?raw_tp")
int reclaim_end(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_find(task);
	struct memtoll_swap_key key = { .tgid = task->tgid };
	__u64 now, cpu_ns, blocked_ns = 0, pages = ctx->args[0];

	if (!thread || !thread->reclaiming)
		return 0;
	now = bpf_ktime_get_ns();
	cpu_ns = stamp_cpu_ns(task, &thread->reclaim, now);
	if (task->nvcsw != thread->reclaim.voluntary)
		blocked_ns = now - thread->reclaim.ns - cpu_ns;
	if (!stopped) {
		key.what = thread->reclaiming;
		key.stack_id = stack_of_stall(task, thread);
		swap_add(&key, pages, cpu_ns, blocked_ns);
	}
	thread->reclaiming = 0;
	thread->fault.reclaim_cpu_ns += cpu_ns;
	thread->fault.reclaim_blocked_ns += blocked_ns;
	thread->call.reclaim_cpu_ns += cpu_ns;
	thread->call.reclaim_ns += now - thread->reclaim.ns;
	thread->map.reclaim_cpu_ns += cpu_ns;
	thread->read.reclaim_cpu_ns += cpu_ns;
	thread->read.reclaim_blocked_ns += blocked_ns;
	return 0;
}

SEC("?raw_tp/mm_vmscan_direct_reclaim_begin")
int direct_begin(void *ctx)
{
	return reclaim_begin(SWAP_RECLAIM_DIRECT);
}

SEC("?raw_tp/mm_vmscan_memcg_reclaim_begin")
int memcg_begin(void *ctx)
{
	return reclaim_begin(SWAP_RECLAIM_MEMCG);
}

static __always_inline __u32 owner_of(struct mm_struct *mm)
{
	__u32 tgid;

	/* Without memory cgroups (CONFIG_MEMCG) the owner is unknown. */
	if (!bpf_core_field_exists(mm->owner))
		return 0;
	tgid = BPF_CORE_READ(mm, owner, tgid);
	return tgid && process_get(tgid) ? tgid : 0;
}

/* By whom pages of process `tgid` are pushed out (0: of one that is not traced). */
static __always_inline __u32 pushed_by(struct task_struct *task, __u32 tgid)
{
	if (tgid && (__u32)task->tgid == tgid)
		return SWAP_OUT_SELF;
	if (task->flags & PF_KSWAPD_FLAG)
		return SWAP_OUT_KSWAPD;
	return process_get(task->tgid) ? SWAP_OUT_TRACED : SWAP_OUT_OTHER;
}

/*
 * A change of the number of swapped pages of some process. The event has no sign. In the owner's
 * own context it is a push only while the owner reclaims: else a page came in, or memory was
 * unmapped. In anybody else's it is always a push: nobody brings pages in for others. What is
 * pushed out of processes that are not traced is summed as one, to be checked against /proc/vmstat.
 */
static __always_inline void swapped_changed(struct task_struct *task, struct mm_struct *mm)
{
	__u32 tgid;

	if (current_mm() == (__u64)mm) {
		if (task->flags & PF_MEMALLOC_FLAG)
			swap_count(process_get(task->tgid) ? task->tgid : 0, SWAP_OUT_SELF, 1);
		if (task->flags & PF_MEMALLOC_FLAG && process_get(task->tgid))
			dropped(DROP_SWAP, 1);
		return;
	}
	if (!bpf_core_field_exists(mm->owner))
		return;
	tgid = owner_of(mm);
	swap_count(tgid, pushed_by(task, tgid), 1);
	if (tgid)
		dropped(DROP_SWAP, 1);
}

/* A page of shared memory was mapped into a process, or taken out of its page tables. */
static __always_inline void shared_changed(struct task_struct *task, struct mm_struct *mm)
{
	__u32 thread = task->pid, tgid;

	if (!(task->flags & PF_MEMALLOC_FLAG))
		return;
	tgid = owner_of(mm);
	if (tgid)
		bpf_map_update_elem(&unmapped_from, &thread, &tgid, BPF_ANY);
}

/*
 * A change of a process's memory counters. It fires at every fault, so it is loaded and attached
 * only where there is swap. Only the first two arguments are read; before 5.19 there was a third.
 */
SEC("?raw_tp/rss_stat")
int rss_changed(struct bpf_raw_tracepoint_args *ctx)
{
	int member = ctx->args[1];

	if (stopped)
		return 0;
	if (member == MM_SWAPENTS)
		swapped_changed(bpf_get_current_task_btf(), (struct mm_struct *)ctx->args[0]);
	else if (member == MM_SHMEMPAGES)
		shared_changed(bpf_get_current_task_btf(), (struct mm_struct *)ctx->args[0]);
	return 0;
}

/*
 * Reclaim has written a page. Anonymous ones are counted where they leave their process. One of
 * shared memory has left its file for swap (shmem_writeout() in mm/shmem.c) and lies in no mapping
 * now; no process's count of swapped pages has it.
 */
SEC("?raw_tp/mm_vmscan_write_folio")
int folio_written(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct folio *folio = (struct folio *)ctx->args[0];
	__u32 thread = task->pid, tgid = 0, *from;
	__u64 pages;

	if (stopped || BPF_CORE_READ(folio, mapping))
		return 0;
	from = bpf_map_lookup_elem(&unmapped_from, &thread);
	if (from)
		tgid = *from;
	bpf_map_delete_elem(&unmapped_from, &thread);
	pages = pages_of_folio(folio);
	swap_count(tgid, pushed_by(task, tgid), pages);
	swap_count(tgid, SWAP_OUT_SHARED, pages);
	if (tgid)
		dropped(DROP_SWAP, pages);
	return 0;
}

/*
 * Pages brought in from swap, by whoever faults, read-ahead included, and from where (6.14 and
 * later). It fires for every event that memory cgroups count, so it is loaded and attached only
 * where there is swap.
 */
SEC("?raw_tp/count_memcg_events")
int memcg_counted(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 item = (__u32)ctx->args[1];
	struct task_struct *task;
	struct thread *thread;
	__u32 pages = ctx->args[2], what;

	if (bpf_core_enum_value_exists(enum vm_event_item, PSWPIN) &&
	    item == bpf_core_enum_value(enum vm_event_item, PSWPIN))
		what = SWAP_IN_DEVICE;
	else if (bpf_core_enum_value_exists(enum vm_event_item, ZSWPIN) &&
		 item == bpf_core_enum_value(enum vm_event_item, ZSWPIN))
		what = SWAP_IN_ZSWAP;
	else if (bpf_core_enum_value_exists(enum vm_event_item, SWPIN_ZERO) &&
		 item == bpf_core_enum_value(enum vm_event_item, SWPIN_ZERO))
		what = SWAP_IN_ZERO;
	else
		return 0;
	if (stopped)
		return 0;
	task = bpf_get_current_task_btf();
	thread = thread_get(task);
	swap_count(thread ? task->tgid : 0, what, pages);
	if (!thread || !thread->fault.active)
		return 0;
	if (what == SWAP_IN_DEVICE)
		thread->fault.in_device += pages;
	else if (what == SWAP_IN_ZSWAP)
		thread->fault.in_zswap += pages;
	else
		thread->fault.in_zero += pages;
	return 0;
}
