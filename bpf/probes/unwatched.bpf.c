// SPDX-License-Identifier: GPL-2.0
/*
 * unwatched.bpf.c: counts mapping and read calls while their own tracepoints are detached, so that
 * userspace knows when to attach them again: how many there are, not what they did. Attached only
 * for that time, to tracepoints that other system calls seldom reach.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "wire/config.h"
#include "state/losses.bpf.h"
#include "state/processes.bpf.h"
#include "state/rates.bpf.h"
#include "state/settings.bpf.h"
#include "state/threads.bpf.h"
#include "state/windows.bpf.h"
#include "memory/page_state.bpf.h"
#include "probes/fault.bpf.h"
#include "probes/mapping.bpf.h"
#include "probes/read.bpf.h"
#include "probes/syscall.bpf.h"

/* include/linux/blk_types.h */
#define REQ_OP_MASK 0xffU
#define REQ_OP_READ_CODE 0U

static __always_inline struct pt_regs *user_regs(struct task_struct *task)
{
	return (struct pt_regs *)bpf_task_pt_regs(task);
}

/*
 * A thread has the lock of its mappings (5.11 and later): all mapping calls take it to write, but
 * that madvise takes it to read, or, from 6.17 on, the lock of one area, which raises no event.
 */
SEC("?raw_tp/mmap_lock_acquire_returned")
int map_unwatched(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 second = ctx->args[1], third = ctx->args[2], write;
	struct thread *thread;
	struct pt_regs *regs;
	__u32 map_fn;
	__s32 nr;

	if (!may_be_traced(task->tgid))
		return 0;
	regs = user_regs(task);
	nr = syscall_nr(regs);
	map_fn = map_fn_of(nr);
	/* Others take the lock, too: a fork, whose thread may never be met. */
	if (!map_fn)
		return 0;
	thread = thread_get(task);

	/* Two words of the context, each at a place that the verifier knows. */
	barrier_var(second);
	barrier_var(third);
	write = cfg_lock_path ? third : second;
	/* In one: its entry was seen, since they are watched again. */
	if (!thread || in_map(thread) || ctx->args[0] != current_mm())
		return 0;
	if (nr == NR_MPROTECT)
		arena_extended(thread, PT_REGS_PARM1_SYSCALL(regs));
	if (map_fn == MAP_FN_MPROTECT || (!(write & 1) && map_fn != MAP_FN_MADVISE))
		return 0;
	/* The faults so far are on mappings as they were. */
	fault_settle(thread);
	map_lost();
	return 0;
}

/* The lock is released: cached areas are stale. By then munmap has downgraded it to a read lock. */
SEC("?raw_tp/mmap_lock_released")
int map_changed(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_find(task);

	if (thread && map_fn_of(syscall_nr(user_regs(task))))
		__sync_fetch_and_add(&area_generation, 1);
	return 0;
}

/* A read that goes unwatched; one that looks several times counts more than once. */
static __always_inline int count_read(struct task_struct *task)
{
	struct memtoll_rates *rates;
	struct thread *thread;

	if (!may_be_traced(task->tgid) || !read_fn_of(syscall_nr(user_regs(task))))
		return 0;
	thread = thread_get(task);
	if (!thread || in_read(thread))
		return 0;
	lose(LOST_READS_UNWATCHED, 1);
	rates = rates_here();
	if (rates)
		rates->unwatched_reads++;
	return 0;
}

/* A read looks up pages in the page cache (6.12 and later). */
SEC("?raw_tp/mm_filemap_get_pages")
int read_unwatched(struct bpf_raw_tracepoint_args *ctx)
{
	return count_read(bpf_get_current_task_btf());
}

/* Or it goes past it, to a block device. */
SEC("?raw_tp/block_bio_queue")
int read_submitted(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct bio *bio = (struct bio *)ctx->args[0];

	if (!may_be_traced(task->tgid) ||
	    (BPF_CORE_READ(bio, bi_opf) & REQ_OP_MASK) != REQ_OP_READ_CODE)
		return 0;
	return count_read(task);
}
