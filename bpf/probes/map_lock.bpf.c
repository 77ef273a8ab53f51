// SPDX-License-Identifier: GPL-2.0
/*
 * map_lock.bpf.c: mapping calls while system calls rest (state/read_rest.bpf.h), by the lock of a
 * process's mappings, which they hold while they change them.
 *
 * A tracepoint on all system calls costs each of them 50 to 100 ns; these cost those that change
 * mappings. What was asked for is in the registers that the thread has come with. What has become of
 * it is known when the lock is released, but for where a new mapping is: that says the search for a
 * place, and it is believed if the mapping is there. What cannot be known is counted as a loss.
 * Attached for the time of a rest, instead of what is in unwatched.bpf.c.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "wire/config.h"
#include "wire/pages.h"
#include "state/processes.bpf.h"
#include "state/settings.bpf.h"
#include "state/threads.bpf.h"
#include "state/windows.bpf.h"
#include "memory/page_state.bpf.h"
#include "probes/fault.bpf.h"
#include "probes/mapping.bpf.h"
#include "probes/syscall.bpf.h"

/* include/uapi/linux/mman.h, asm-generic/mman-common.h */
#define MAP_FIXED_FLAG 0x10
#define MAP_FIXED_NOREPLACE_FLAG 0x100000
#define MREMAP_FIXED_FLAG 2
#define MREMAP_DONTUNMAP_FLAG 4
#define PROT_FLAGS 7 /* as of VM_READ, VM_WRITE and VM_EXEC */
#define MADV_COLLAPSE_CODE 25
#define MADV_GUARD_INSTALL_CODE 102
#define MADV_GUARD_REMOVE_CODE 103

/* include/linux/mm.h */
#define TOPDOWN 1
#define VM_PFNMAP_FLAG 0x400
#define VM_LOCKED_FLAG 0x2000

#define PAGE_CEIL(bytes) (((bytes) + MEMTOLL_PAGE_SIZE - 1) & ~(MEMTOLL_PAGE_SIZE - 1))
#define HUGE_PAGE_SIZE (2ULL << 20)
#define NO_MEMORY (-12LL)
#define INVALID (-22LL)
#define NO_SUCH_CALL (-38LL)
#define NOWHERE (~0ULL) /* a place that no mapping has */

static __always_inline struct pt_regs *user_regs(void)
{
	return (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
}

/* mmap's sixth argument; libbpf has macros for five before 1.2. */
static __always_inline __u64 file_offset(const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->r9;
#elif defined(__TARGET_ARCH_arm64)
	return ((const struct user_pt_regs *)regs)->regs[5];
#endif
}

/* The area of the running process that has all of it, or NULL. */
static __always_inline struct vm_area_struct *area_of(__u64 address, __u64 bytes)
{
	struct vm_area_struct *area = (struct vm_area_struct *)vma_find(address);

	/* Of a length that wraps around there is none. */
	return area && address + bytes > address && BPF_CORE_READ(area, vm_start) <= address &&
			       BPF_CORE_READ(area, vm_end) >= address + bytes ?
		       area :
		       NULL;
}

/*
 * Whether the running thread is still in its call: on the way out, too, the lock is taken, for faults
 * of the kernel's own, and the registers are as they were. The entry puts ENOSYS where the result
 * will be (arch/x86/entry/entry_64.S); arm64 leaves no such mark.
 */
static __always_inline bool is_in_call(const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return (__s64)regs->ax == NO_SUCH_CALL;
#else
	return true;
#endif
}

/* Those that take the lock as readers, and once. */
static __always_inline bool is_advice(__u64 arg)
{
	return arg == MADV_DONTNEED_CODE || arg == MADV_FREE_CODE || arg == MADV_COLD_CODE ||
	       arg == MADV_PAGEOUT_CODE || arg == MADV_DONTNEED_LOCKED_CODE ||
	       arg == MADV_GUARD_INSTALL_CODE || arg == MADV_GUARD_REMOVE_CODE;
}

/*
 * What ends with the lock: not mlock, nor what else takes it again for each part that it faults in,
 * as all that maps does where memory is locked.
 */
static __always_inline bool ends_by_lock(const struct thread *thread, bool write)
{
	const struct open_map_call *map = &thread->map;

	if (map->map_fn == MAP_FN_MUNMAP)
		return true;
	if (map->map_fn == MAP_FN_MADVISE)
		return write ? map->arg != MADV_COLLAPSE_CODE : is_advice(map->arg);
	return map->map_fn < MAP_FN_IN_CALLS && !map->may_populate;
}

/* It holds the lock, and ends with it. An area that goes on tells nothing of one that grows. */
static __always_inline void take(struct thread *thread, bool write)
{
	struct open_map_call *map = &thread->map;
	bool grows = map->map_fn == MAP_FN_MREMAP && map->arg > map->len;

	map->placed =
		grows && area_of(map->addr, PAGE_CEIL(map->len) + MEMTOLL_PAGE_SIZE) ? NOWHERE : 0;
	map->by_lock = ends_by_lock(thread, write);
}

/* A call that changes mappings has the lock. */
static __always_inline void call_begin(struct thread *thread, __s32 nr, bool write)
{
	__u32 map_fn = map_fn_of(nr);

	if (map_fn == MAP_FN_MPROTECT || (!write && map_fn != MAP_FN_MADVISE))
		return;
	thread->unbegun = 0;
	map_begin(thread, nr);
	take(thread, write);
	if (!thread->map.by_lock) {
		thread->map.map_fn = MAP_FN_NONE;
		map_lost();
	}
}

SEC("?raw_tp/mmap_lock_acquire_returned")
int map_locked(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 write = ctx->args[1], success = ctx->args[2];
	struct thread *thread;
	__s32 nr;

	if (!may_be_traced(task->tgid) || is_compat(task))
		return 0;
	nr = syscall_nr(user_regs());
	/* Others take the lock, too: a fork, whose thread may never be met. */
	if ((!map_fn_of(nr) && nr != NR_SHMAT) || !is_in_call(user_regs()))
		return 0;
	thread = thread_get(task);
	/* Words of the context, each at a place that the verifier knows; the last is not always there. */
	barrier_var(write);
	barrier_var(success);
	if (cfg_lock_path) {
		write = success;
		success = ctx->args[3];
		barrier_var(success);
	}
	/* Not where the wait for it was ended by a signal. */
	if (!thread || ctx->args[0] != current_mm() || !(success & 1))
		return 0;
	if (nr == NR_SHMAT) {
		if (write & 1 && !calls_are_watched())
			map_lost();
		return 0;
	}
	if (nr == NR_MPROTECT && !in_map(thread))
		arena_extended(thread, PT_REGS_PARM1_SYSCALL(user_regs()));
	/* Its entry was seen; its exit need not be, where the window ends before. */
	if (in_map(thread) && !thread->map.by_lock) {
		take(thread, write & 1);
		return 0;
	}
	call_begin(thread, nr, write & 1);
	return 0;
}

/*
 * Where anonymous memory of 2 MiB and more is put: a place for 2 MiB more is searched for, and the
 * mapping begins on a boundary in it. (mm/huge_memory.c, __thp_get_unmapped_area())
 */
static __always_inline __u64 aligned_place(__u64 place, __u64 offset, bool topdown)
{
	__u64 off = (offset - place) & (HUGE_PAGE_SIZE - 1);

	return topdown && !off ? place + HUGE_PAGE_SIZE : place + off;
}

/* mm/mmap.c: vm_unmapped_area(). Where one search fails another follows. */
SEC("?raw_tp/vm_unmapped_area")
int map_placed(struct bpf_raw_tracepoint_args *ctx)
{
	struct thread *thread = thread_find(bpf_get_current_task_btf());
	struct vm_unmapped_area_info *info = (void *)ctx->args[1];
	__u64 place = ctx->args[0], bytes, offset;
	bool topdown;

	if (!thread || !thread->map.map_fn || !thread->map.by_lock)
		return 0;
	bytes = PAGE_CEIL(thread->map.map_fn == MAP_FN_MREMAP ? thread->map.arg : thread->map.len);
	topdown = BPF_CORE_READ(info, flags) & TOPDOWN;
	/* What mremap moves of a file is not believed, should it lie elsewhere by that. */
	offset = thread->map.map_fn == MAP_FN_MREMAP || thread->map.flags & MAPPING_ANONYMOUS ?
			 0 :
			 file_offset(user_regs());
	if (BPF_CORE_READ(info, length) == bytes + HUGE_PAGE_SIZE)
		place = aligned_place(place, offset, topdown);
	thread->map.placed = place;
	return 0;
}

/* Where it is, if it is there with that protection. */
static __always_inline __s64 if_mapped(__u64 place, __u64 bytes, __u64 prot)
{
	struct vm_area_struct *area = area_of(place, PAGE_CEIL(bytes));

	return area && (BPF_CORE_READ(area, vm_flags) & PROT_FLAGS) == (prot & PROT_FLAGS) ?
		       (__s64)place :
		       NO_MEMORY;
}

/*
 * Where a new mapping is. Of one that is to replace nothing, what is there may be what it was refused
 * for. A hint is rounded down.
 */
static __always_inline __s64 mapped_at(const struct open_map_call *map, __u64 flags)
{
	__u64 place = map->placed ? map->placed : map->addr & ~(MEMTOLL_PAGE_SIZE - 1);

	if (flags & MAP_FIXED_NOREPLACE_FLAG)
		return NO_MEMORY;
	return if_mapped(flags & MAP_FIXED_FLAG ? map->addr : place, map->len, map->arg);
}

/* What is left where it was is there in any case. */
static __always_inline __s64 moved_to(const struct open_map_call *map, __u64 flags, __u64 fixed)
{
	__u64 place = map->placed		    ? map->placed :
		      flags & MREMAP_DONTUNMAP_FLAG ? NOWHERE :
						      map->addr;

	if (flags & MREMAP_FIXED_FLAG)
		place = fixed;
	return area_of(place, PAGE_CEIL(map->arg)) ? (__s64)place : NO_MEMORY;
}

/* Of memory that is locked, or a device's, no pages are given away: such advice fails. */
static __always_inline __s64 advised(const struct open_map_call *map)
{
	struct vm_area_struct *area = area_of(map->addr, 1);

	if (!area)
		return NO_MEMORY;
	if (!is_advice(map->arg) || map->arg == MADV_DONTNEED_LOCKED_CODE)
		return 0;
	return BPF_CORE_READ(area, vm_flags) & (VM_PFNMAP_FLAG | VM_LOCKED_FLAG) ? NO_MEMORY : 0;
}

/* What the call is about to return; NO_MEMORY, too, where that is not known. */
static __always_inline __s64 result_of(const struct open_map_call *map)
{
	const struct pt_regs *regs = user_regs();
	__u64 flags = PT_REGS_PARM4_SYSCALL(regs);

	switch (map->map_fn) {
	case MAP_FN_BRK:
		return current_heap_top();
	case MAP_FN_MUNMAP:
		return map->addr % MEMTOLL_PAGE_SIZE || area_of(map->addr, MEMTOLL_PAGE_SIZE) ?
			       INVALID :
			       0;
	case MAP_FN_MMAP:
		return mapped_at(map, flags);
	case MAP_FN_MREMAP:
		return moved_to(map, flags, PT_REGS_PARM5_SYSCALL(regs));
	default:
		return advised(map);
	}
}

/* The lock is released: cached areas are stale. Of munmap it is a reader's by then. */
SEC("?raw_tp/mmap_lock_released")
int map_released(struct bpf_raw_tracepoint_args *ctx)
{
	struct thread *thread = thread_find(bpf_get_current_task_btf());
	struct open_map_call *map;
	__s64 result;

	/* Most are others'. */
	if (!thread || !map_fn_of(syscall_nr(user_regs())) || ctx->args[0] != current_mm())
		return 0;
	__sync_fetch_and_add(&area_generation, 1);
	map = &thread->map;
	if (!map->map_fn || !map->by_lock || !is_counted(thread))
		return 0;
	result = result_of(map);
	if (result == NO_MEMORY && calls_are_watched()) {
		/* Its exit will tell. */
		map->by_lock = 0;
		return 0;
	}
	if (result == NO_MEMORY) {
		map->map_fn = MAP_FN_NONE;
		map_lost();
		return 0;
	}
	return map_finish(result);
}
