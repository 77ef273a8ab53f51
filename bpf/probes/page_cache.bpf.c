// SPDX-License-Identifier: GPL-2.0
/*
 * page_cache.bpf.c: pages of files that come into the page cache for the target.
 *
 * A page that comes in a second time was thrown out meanwhile: which ones do is what userspace
 * finds out (fills.c). One fault brings in many, and read-ahead brings them in minor faults as
 * well, so that neither the number nor the kind of faults tells.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "wire/faults.h"
#include "wire/pages.h"
#include "wire/records.h"
#include "state/emit.bpf.h"
#include "state/losses.bpf.h"
#include "state/settings.bpf.h"
#include "state/threads.bpf.h"
#include "state/windows.bpf.h"
#include "probes/fault.bpf.h"
#include "probes/page_cache.bpf.h"
#include "probes/read.bpf.h"
#include "probes/syscall.bpf.h"

/* Files that the target has brought pages of in. */
struct filled_file {
	__u64 inode;
	__u32 dev;
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct filled_file);
	__type(value, __u8);
} filled_files SEC(".maps");

volatile __u32 files_are_filled = 0;

int file_is_filled(__u64 inode, __u32 dev)
{
	const struct filled_file key = { .inode = inode, .dev = dev };

	return bpf_map_lookup_elem(&filled_files, &key) != NULL;
}

int fills_emit(struct thread *thread)
{
	if (thread && thread->fill.pages) {
		emit(&thread->fill, sizeof(thread->fill), LOST_RING_FILL, thread->fill.pages,
		     false);
		thread->fill.pages = 0;
	}
	return 0;
}

/*
 * What the page comes in for; 0: for none of these, as in write(2). A fault whose end was not seen
 * still stands as open when the thread is long in a system call.
 */
__noinline __u32 cause_of_fill(const struct thread *thread)
{
	const struct open_fault *fault;
	bool in_call;

	if (!thread)
		return 0;
	fault = &thread->fault;
	if (in_read(thread))
		return FILL_READ;
	if (in_map(thread))
		return FILL_MAP;
	if (!fault->active ||
	    (fault->fault_class != FAULT_FILE && fault->fault_class != FAULT_FILE_AGAIN &&
	     fault->fault_class != FAULT_COW))
		return 0;
	in_call = syscall_nr((struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf())) >= 0;
	return in_call == !!(fault->flags & RUN_KERNEL_MODE) ? FILL_FAULT : 0;
}

/* What was asked for: read-ahead brings more, and may bring it before. */
static __always_inline __u64 wanted_page(const struct thread *thread, __u32 cause, __u64 index)
{
	switch (cause) {
	case FILL_READ:
		return thread->read.position / MEMTOLL_PAGE_SIZE;
	case FILL_FAULT:
		return thread->fault.address / MEMTOLL_PAGE_SIZE + thread->area.offset;
	default:
		return index;
	}
}

static __always_inline void fill_begin(struct task_struct *task, struct memtoll_fill *fill,
				       struct address_space *mapping, __u64 index, __u32 flags)
{
	struct inode *inode = BPF_CORE_READ(mapping, host);
	struct filled_file key = {};
	__u8 filled = 1;

	fill->kind = EVENT_FILL;
	fill->tgid = task->tgid;
	fill->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	fill->inode = BPF_CORE_READ(inode, i_ino);
	fill->bytes = BPF_CORE_READ(inode, i_size);
	fill->flags = flags;
	fill->start = index;
	fill->requests = 0;
	key.inode = fill->inode;
	key.dev = fill->dev;
	files_are_filled = 1;
	if (!bpf_map_lookup_elem(&filled_files, &key))
		bpf_map_update_elem(&filled_files, &key, &filled, BPF_ANY);
}

static __always_inline void fill_add(struct task_struct *task, struct thread *thread,
				     struct folio *folio, __u64 pages, __u32 cause)
{
	struct address_space *mapping = BPF_CORE_READ(folio, mapping);
	__u64 index = BPF_CORE_READ(folio, index);
	struct fill_place *place = &thread->fill_place;
	struct memtoll_fill *fill = &thread->fill;
	__u64 request = cause == FILL_READ ? thread->read.start.ns :
			cause == FILL_MAP  ? thread->map.start.ns :
					     thread->fault.address;
	bool same_file = place->mapping == (__u64)mapping && fill->flags == cause;

	if (!fill->pages || !same_file || fill->start + fill->pages != index) {
		fills_emit(thread);
		/* Uses of those pages, after them: which come again unused is to be known. */
		run_emit(thread);
		reads_emit(thread);
		fill_begin(task, fill, mapping, index, cause);
	}
	if (!same_file || place->request != request) {
		fill->last_wanted = wanted_page(thread, cause, index);
		if (!fill->requests++)
			fill->first_wanted = fill->last_wanted;
	}
	fill->pages += pages;
	place->mapping = (__u64)mapping;
	place->request = request;
}

/* The page cache takes in a page: who wants it, or its read-ahead, did not find it there. */
SEC("?raw_tp/mm_filemap_add_to_page_cache")
int page_filled(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct folio *folio = (struct folio *)ctx->args[0];
	struct thread *thread = thread_find(task);
	__u64 pages;
	__u32 cause;

	if (!thread || stopped)
		return 0;
	cause = cause_of_fill(thread);
	if (!cause)
		return 0;
	pages = pages_of_folio(folio);
	if (cause == FILL_READ)
		thread->read.filled_pages += pages;
	fill_add(task, thread, folio, pages, cause);
	return 0;
}
