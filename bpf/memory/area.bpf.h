/* SPDX-License-Identifier: GPL-2.0 */
/*
 * area.bpf.h: the kind of memory area an address lies in, and the file behind it. The kernel is
 * asked once per area and change of mappings.
 */
#ifndef MEMTOLL_AREA_BPF_H
#define MEMTOLL_AREA_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "wire/config.h"
#include "wire/faults.h"
#include "wire/pages.h"
#include "wire/records.h"
#include "state/emit.bpf.h"
#include "state/losses.bpf.h"
#include "state/settings.bpf.h"
#include "state/thread.bpf.h"
#include "memory/page_state.bpf.h"

/* VM_MAYSHARE: of a shared mapping of a file opened for reading only, VM_SHARED is taken away. */
#define VM_SHARED_FLAG 0x80ULL
#define VM_HUGETLB_FLAG 0x00400000ULL /* include/linux/mm.h, VMA_HUGETLB */
#define S_DAX_FLAG (1U << 13)	      /* include/linux/fs.h */
#define VM_ACCESS_FLAGS 0x7ULL	      /* VM_READ, VM_WRITE, VM_EXEC */
#define VM_WRITE_FLAG 0x2ULL
#define VM_UFFD_MISSING_FLAG 0x200ULL
#define VM_UFFD_WP_FLAG 0x1000ULL
/* Bit 37, from 6.6 on 38, from 6.16 on 41: in shared memory none of these means anything else. */
#define VM_UFFD_MINOR_FLAGS (1ULL << 37 | 1ULL << 38 | 1ULL << 41)
/* Frames without a struct page, or of a driver: VM_PFNMAP, VM_IO; VM_MIXEDMAP. */
#define VM_DEVICE_FLAGS 0x4400ULL
#define VM_MIXEDMAP_FLAG 0x10000000ULL
#define INODE_TYPE 0170000 /* include/uapi/linux/stat.h */
#define INODE_REGULAR 0100000

/* glibc (malloc/arena.c): heaps of other arenas lie on such a boundary and begin with a pointer. */
#define HEAP_MAX (64ULL << 20)
#define ARENA_OFFSET_MAX 256 /* bytes of heap_info before the arena of a first heap */

/* Files that were sent to userspace. */
struct file_key {
	__u64 inode;
	__u32 dev;
	__u32 tgid;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct file_key);
	__type(value, __u8);
} files_sent SEC(".maps");

/* What shmem_zero_setup() calls the file behind shared anonymous memory: each mapping has its own. */
#define ZERO_FILE_NAME 0x6f72657a2f766564ULL /* "dev/zero": no name of a file has a '/' */

/*
 * All that the kernel has of the area and its file, as numbers: read while the area is known to be
 * there, under the lock or before area_peek() looks again. A global function: each way through it
 * would be a way of its own through what follows.
 */
int area_take(__u64 area_at, struct area_query *query)
{
	struct vm_area_struct *vma = (struct vm_area_struct *)area_at;
	struct file *file = NULL;
	struct super_block *sb;
	__u64 name;

	if (!query)
		return 0;
	*query = (struct area_query){
		.start = BPF_CORE_READ(vma, vm_start),
		.end = BPF_CORE_READ(vma, vm_end),
		.flags = BPF_CORE_READ(vma, vm_flags),
		.area_at = area_at,
	};
	if (bpf_core_field_exists(vma->vm_userfaultfd_ctx.ctx))
		query->userfault = BPF_CORE_READ(vma, vm_userfaultfd_ctx.ctx);
	/* A private mapping of /dev/zero has a file, but no operations: it is anonymous. */
	if (BPF_CORE_READ(vma, vm_ops))
		file = BPF_CORE_READ(vma, vm_file);
	if (!file)
		return 0;
	sb = BPF_CORE_READ(file, f_inode, i_sb);
	query->file = true;
	query->regular = (BPF_CORE_READ(file, f_inode, i_mode) & INODE_TYPE) == INODE_REGULAR;
	query->tmpfs = BPF_CORE_READ(sb, s_magic) == TMPFS_SUPER_MAGIC;
	query->inode = BPF_CORE_READ(file, f_inode, i_ino);
	query->dev = BPF_CORE_READ(sb, s_dev);
	/* Of a file in DAX the page cache has no pages, but values that stand for the device's. */
	if (!(BPF_CORE_READ(file, f_inode, i_flags) & S_DAX_FLAG))
		query->mapping = (__u64)BPF_CORE_READ(file, f_mapping);
	query->offset = BPF_CORE_READ(vma, vm_pgoff);
	query->name = (__u64)BPF_CORE_READ(file, f_path.dentry, d_name.name);
	if (query->tmpfs && !bpf_probe_read_kernel(&name, sizeof(name), (void *)query->name))
		query->zero_file = name == ZERO_FILE_NAME;
	return 0;
}

static long area_found(struct task_struct *task, struct vm_area_struct *vma,
		       struct area_query *query)
{
	struct vm_area_struct *place = vma;
	__u64 area_at;

	/* The number alone: a global function takes no pointer to what the kernel has. */
	bpf_probe_read_kernel(&area_at, sizeof(area_at), &place);
	area_take(area_at, query);
	return 0;
}

/*
 * The same without the lock. 0: found. If it was unmapped since, the structure may describe another
 * area by now, with other bounds or of another process.
 */
static __always_inline int area_peek(__u64 address, struct area_query *query)
{
	struct vm_area_struct *vma = (struct vm_area_struct *)vma_find(address);

	if (!vma)
		return -1;
	area_take((__u64)vma, query);
	if (address < query->start || address >= query->end)
		return -1;
	return (__u64)BPF_CORE_READ(vma, vm_mm) == current_mm() &&
			       BPF_CORE_READ(vma, vm_start) == query->start ?
		       0 :
		       -1;
}

/*
 * Under the lock. Interrupts are off in a fault, where bpf_find_vma() cannot give it back itself:
 * it has that done by an interrupt to its own CPU, 10 us in a virtual machine. The kernel wants the
 * callback's argument on the stack; so this is a function by itself, whose stack nothing else adds
 * to.
 */
int area_find_locked(__u64 address, struct area_query *found)
{
	struct area_query query = {};

	if (!found || bpf_find_vma(bpf_get_current_task_btf(), address, area_found, &query, 0))
		return -1;
	*found = query;
	return 1;
}

/*
 * The area that holds an address; what kind it is, judge_area() says. -1: there is none; 1: it was
 * asked for under the lock, and an interrupt comes of it. A global function: each way through it
 * would be a way of its own through what follows, which took a third of the time to load all.
 */
int area_find(__u64 address, struct area_query *found)
{
	if (!cfg_find_vma || !found)
		return -1;
	if (!area_peek(address, found))
		return 0;
	return area_find_locked(address, found);
}

static __always_inline void judge_area(struct area_query *query)
{
	__u64 stack;

	query->shared = (query->flags & VM_SHARED_FLAG) != 0;
	query->hugetlb = (query->flags & VM_HUGETLB_FLAG) != 0;
	/* Not the files of a file system that lies in memory (DAX). */
	if (query->flags & VM_DEVICE_FLAGS ||
	    (query->flags & VM_MIXEDMAP_FLAG && !query->regular)) {
		query->area = AREA_DEVICE;
	} else if (query->file) {
		query->area = query->shared && query->tmpfs ? AREA_SHARED : AREA_FILE;
	} else if (query->start <= current_heap_top() && query->end >= current_heap()) {
		query->area = AREA_HEAP;
	} else {
		stack = current_stack();
		query->area = query->start <= stack && query->end >= stack ? AREA_STACK : AREA_ANON;
	}
}

/*
 * Whether the area is as it was when the kernel was asked. userfaultfd changes it without a call that
 * is watched; who waits for a handler has slept, and looks again.
 */
static __always_inline bool area_is_same(const struct task_struct *task, struct area_cache *cache)
{
	struct vm_area_struct *vma = (struct vm_area_struct *)cache->area_at;
	__u32 voluntary = task->nvcsw;

	if (voluntary == cache->voluntary)
		return true;
	cache->voluntary = voluntary;
	return !vma || BPF_CORE_READ(vma, vm_flags) == cache->flags;
}

static __always_inline bool area_is_known(const struct task_struct *task, struct thread *thread,
					  __u64 address)
{
	struct area_cache *cache = &thread->area;

	return address >= cache->start && address < cache->end &&
	       cache->generation == area_generation && area_is_same(task, cache);
}

/* Whether a write to a present page is forbidden, as of now: mprotect makes more areas of one. */
static __always_inline bool area_forbids_writing(const struct area_cache *cache, __u64 address)
{
	struct vm_area_struct *vma = (struct vm_area_struct *)cache->area_at;
	__u64 flags;

	if (!vma)
		return false;
	if (address < BPF_CORE_READ(vma, vm_start) || address >= BPF_CORE_READ(vma, vm_end))
		vma = (struct vm_area_struct *)vma_find(address);
	if (!vma)
		return false;
	flags = BPF_CORE_READ(vma, vm_flags);
	return flags & VM_ACCESS_FLAGS && !(flags & VM_WRITE_FLAG);
}

/*
 * The stack of a thread that is not the first: its stack pointer and control block are there. A
 * control block begins with its own address; where Go's runtime has its heap, goroutines' stacks and
 * what the register points to are in one area, too, and it does not.
 */
static __always_inline bool is_thread_stack(struct task_struct *task,
					    const struct area_query *query, __u64 sp)
{
#if defined(__TARGET_ARCH_x86)
	__u64 control_block = task->thread.fsbase, self;

	return query->end - query->start <= THREAD_STACK_MAX && sp >= query->start &&
	       sp < query->end && control_block >= query->start && control_block < query->end &&
	       !bpf_probe_read_user(&self, sizeof(self), (void *)control_block) &&
	       self == control_block;
#else
	return false;
#endif
}

/*
 * A file area's name goes to userspace once per process. Should it be gone, reading it fails. Of
 * shared anonymous memory, whose files come with each mapping, there is nothing to be said.
 * Whether it was sent now, which wakes.
 */
static __always_inline bool file_send(struct task_struct *task, struct thread *thread,
				      const struct area_query *query)
{
	struct file_key key = { .inode = query->inode, .dev = query->dev, .tgid = task->tgid };
	struct memtoll_file *file = &thread->file;
	__u8 sent = 1;
	bool wakes;

	if (query->zero_file || bpf_map_lookup_elem(&files_sent, &key))
		return false;
	bpf_map_update_elem(&files_sent, &key, &sent, BPF_ANY);
	file->kind = EVENT_FILE;
	file->tgid = task->tgid;
	file->inode = query->inode;
	file->dev = query->dev;
	if (bpf_probe_read_kernel_str(file->name, sizeof(file->name), (void *)query->name) < 0)
		file->name[0] = '\0';
	wakes = wake_is_due(bpf_ktime_get_ns());
	emit(file, sizeof(*file), LOST_RING_PROCESS, 1, wakes);
	return wakes;
}

/* Arena, thread stack or plain; false: not known yet, ask again. */
static __always_inline bool refine_anonymous(struct task_struct *task, struct area_query *query,
					     __u64 address, __u64 sp)
{
	__u64 heap = address & ~(HEAP_MAX - 1), arena;

	if (is_thread_stack(task, query, sp)) {
		query->area = AREA_STACK;
		return true;
	}
	if (heap < query->start || query->hugetlb)
		return true;
	/* The very first fault of a heap is on the page that will say so. */
	if (bpf_probe_read_user(&arena, sizeof(arena), (void *)heap))
		return heap != (address & ~(MEMTOLL_PAGE_SIZE - 1));
	if (arena >= HEAP_MAX && arena % HEAP_MAX < ARENA_OFFSET_MAX && arena % HEAP_MAX)
		query->area = AREA_ARENA;
	return true;
}

/* No area holds the address. A stack is about to grow: the address lies below its area. */
static __always_inline void area_missing(struct area_cache *cache, __u64 address)
{
	__u64 stack = current_stack();

	if (address < stack && stack - address < 1 << 30)
		cache->area = AREA_STACK;
	else
		lose(LOST_AREA_UNKNOWN, 1);
}

/*
 * Returns whether an interrupt comes of it, which is taken as soon as the fault lets interrupts in.
 */
static __always_inline bool area_ask(struct task_struct *task, struct thread *thread, __u64 address,
				     __u64 sp)
{
	struct area_query *query = &thread->query;
	struct area_cache *cache = &thread->area;
	bool lasting = true, interrupts;
	int asked;

	__builtin_memset(cache, 0, sizeof(*cache));
	if (!cfg_find_vma)
		return false;
	asked = area_find(address, query);
	interrupts = asked != 0;
	if (asked < 0) {
		area_missing(cache, address);
		return interrupts;
	}
	judge_area(query);
	/* Not by its inode: that of System V shared memory is the segment's number, 0 at first. */
	if (query->dev)
		interrupts |= file_send(task, thread, query);
	else if (query->area == AREA_ANON)
		lasting = refine_anonymous(task, query, address, sp);
	/* An arena is known heap by heap; several may make up one area. */
	if (query->area == AREA_ARENA) {
		__u64 heap = address & ~(HEAP_MAX - 1);

		query->start = heap > query->start ? heap : query->start;
		query->end = heap + HEAP_MAX < query->end ? heap + HEAP_MAX : query->end;
	}
	/*
	 * An answer that does not last gets the generation before: the fault's own pages still lie
	 * in it.
	 */
	cache->generation = lasting ? area_generation : area_generation - 1;
	cache->start = query->start;
	cache->end = query->end;
	cache->area = query->area;
	cache->shared = query->shared;
	cache->hugetlb = query->hugetlb;
	cache->tmpfs = query->tmpfs;
	cache->zero_file = query->zero_file;
	cache->mapping = query->mapping;
	cache->offset = query->offset - query->start / MEMTOLL_PAGE_SIZE;
	cache->flags = query->flags;
	cache->area_at = query->area_at;
	cache->voluntary = task->nvcsw;
	cache->userfault = query->userfault;
	cache->inode = query->inode;
	cache->dev = query->dev;
	return interrupts;
}

#endif /* MEMTOLL_AREA_BPF_H */
