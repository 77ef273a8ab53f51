// SPDX-License-Identifier: GPL-2.0
/*
 * dropped.bpf.c: who throws out pages of the target's files, and pushes out its memory.
 *
 * Reclaim throws out whatever was not used for longest, whoever it belongs to: the process that
 * wants memory does it, kswapd, or one that is asked to.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "wire/sums.h"
#include "state/losses.bpf.h"
#include "state/row.bpf.h"
#include "state/settings.bpf.h"
#include "state/threads.bpf.h"
#include "state/windows.bpf.h"
#include "memory/page_state.bpf.h"
#include "stacks/memo.bpf.h"
#include "probes/dropped.bpf.h"
#include "probes/page_cache.bpf.h"
#include "probes/syscall.bpf.h"

#define ADVICE_PAGEOUT 21 /* include/uapi/asm-generic/mman-common.h */

/* include/uapi/linux/magic.h */
#define PROC_SUPER_MAGIC 0x9fa0
#define CGROUP_SUPER_MAGIC 0x27e0eb
#define CGROUP2_SUPER_MAGIC 0x63677270

SUM_TABLE(drops, 1024, 128, struct memtoll_drop_key, struct memtoll_drop_sum);

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct memtoll_dropper);
} droppers SEC(".maps");

/* Writing to a control of a cgroup, or to /proc: memory.reclaim, memory.force_empty, drop_caches. */
static __always_inline bool is_asked(const struct pt_regs *regs)
{
	struct file *file;
	__u64 magic;

	if (syscall_nr(regs) != NR_WRITE)
		return false;
	file = (struct file *)current_file(PT_REGS_PARM1_SYSCALL(regs));
	if (!file)
		return false;
	magic = BPF_CORE_READ(file, f_inode, i_sb, s_magic);
	return magic == CGROUP_SUPER_MAGIC || magic == CGROUP2_SUPER_MAGIC ||
	       magic == PROC_SUPER_MAGIC;
}

/* What is no reclaim and not asked for is gone for good, as when a file is cut short or deleted. */
static __always_inline __u16 how_dropped(struct task_struct *task, const struct thread *thread)
{
	const struct pt_regs *regs = (const struct pt_regs *)bpf_task_pt_regs(task);

	if (task->flags & PF_KSWAPD_FLAG)
		return DROP_KSWAPD;
	if (is_asked(regs))
		return DROP_ASKED;
	if (!(task->flags & PF_MEMALLOC_FLAG))
		return thread && syscall_nr(regs) == NR_FADVISE64 ? DROP_FADVISE : DROP_CUT;
	if (!thread)
		return DROP_OTHER;
	return syscall_nr(regs) == NR_MADVISE && PT_REGS_PARM3_SYSCALL(regs) == ADVICE_PAGEOUT ?
		       DROP_MADVISE :
		       DROP_SELF;
}

/* A function by itself, whose stack does not add to that of a walk. */
__noinline int name_dropper(__u32 tgid)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct memtoll_dropper dropper = {};
	struct cgroup_subsys_state *css = NULL;
	struct css_set *set;

	if (bpf_map_lookup_elem(&droppers, &tgid))
		return 0;
	BPF_CORE_READ_INTO(&dropper.comm, task, group_leader, comm);
	if (bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id)) {
		set = BPF_CORE_READ(task, cgroups);
		bpf_core_read(
			&css, sizeof(css),
			&set->subsys[bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id)]);
	}
	if (css)
		bpf_probe_read_kernel_str(dropper.group, sizeof(dropper.group),
					  BPF_CORE_READ(css, cgroup, kn, name));
	bpf_map_update_elem(&droppers, &tgid, &dropper, BPF_ANY);
	return 0;
}

/* Of the system call that the thread is in: looked for once, where its begin was seen. */
static __always_inline __u64 stack_of_call(struct task_struct *task, struct thread *thread)
{
	__u64 began_ns = in_map(thread) ? thread->map.start.ns : 0;

	if (!began_ns || thread->drop_began_ns != began_ns) {
		thread->drop_stack_id =
			memo_stack(thread, (struct pt_regs *)bpf_task_pt_regs(task), true);
		thread->drop_began_ns = began_ns;
	}
	return thread->drop_stack_id;
}

int dropped(__u32 what, __u64 pages)
{
	static const struct memtoll_drop_sum zero;
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_find(task);
	struct memtoll_drop_key key = { .what = what };
	struct memtoll_drop_sum *sum;

	key.how = how_dropped(task, thread);
	/* What leaves swap otherwise (swapoff, the out-of-memory killer) is not pushed out. */
	if (stopped || (what == DROP_SWAP && key.how == DROP_CUT))
		return 0;
	if (key.how != DROP_KSWAPD)
		key.tgid = task->tgid;
	if (thread && (key.how == DROP_MADVISE || key.how == DROP_FADVISE))
		key.stack_id = stack_of_call(task, thread);
	sum = row_find(&drops, &drops_shared, &key, &zero);
	if (!sum) {
		if (key.tgid && !thread)
			name_dropper(key.tgid);
		sum = row_make(&drops, &drops_shared, &key, &zero);
	}
	if (!sum) {
		lose(LOST_DROPS_FULL, pages);
		return 0;
	}
	__sync_fetch_and_add(&sum->pages, pages);
	return 0;
}

/*
 * The page cache loses a page. It fires for every file of the machine: those that the target has
 * brought in are known.
 */
SEC("?raw_tp/mm_filemap_delete_from_page_cache")
int page_dropped(struct bpf_raw_tracepoint_args *ctx)
{
	struct folio *folio = (struct folio *)ctx->args[0];
	struct inode *inode;

	if (!files_are_filled)
		return 0;
	inode = BPF_CORE_READ(folio, mapping, host);
	if (!file_is_filled(BPF_CORE_READ(inode, i_ino), BPF_CORE_READ(inode, i_sb, s_dev)))
		return 0;
	return dropped(DROP_FILE, pages_of_folio(folio));
}
