// SPDX-License-Identifier: GPL-2.0
/*
 * mapping.bpf.c: mmap, munmap, mremap, brk and madvise of the target: time, and what they changed;
 * shmdt is a munmap of what shmat has mapped.
 * mlock and its kin, too, and mprotect of locked memory: they fault pages in.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "wire/records.h"
#include "wire/sums.h"
#include "state/emit.bpf.h"
#include "state/losses.bpf.h"
#include "state/numbers.bpf.h"
#include "state/rates.bpf.h"
#include "state/row.bpf.h"
#include "state/settings.bpf.h"
#include "state/threads.bpf.h"
#include "state/windows.bpf.h"
#include "memory/page_state.bpf.h"
#include "stacks/call_stack.bpf.h"
#include "stacks/memo.bpf.h"
#include "probes/fault.bpf.h"
#include "probes/fault_thinning.bpf.h"
#include "probes/map_thinning.bpf.h"
#include "probes/mapping.bpf.h"
#include "probes/populate.bpf.h"
#include "probes/syscall.bpf.h"

#define PROT_EXEC 0x4
#define MAP_FIXED_FLAGS (0x10 | 0x100000) /* MAP_FIXED, MAP_FIXED_NOREPLACE */
#define MAP_ANONYMOUS 0x20
#define MAP_SHARED 0x1			     /* and of MAP_SHARED_VALIDATE */
#define MAP_POPULATE_FLAGS (0x8000 | 0x2000) /* MAP_POPULATE, MAP_LOCKED */
#define MADV_POPULATE_READ_CODE 22

/* What a call takes that faults nothing in, about, its probes with it: the rest is the faults'. */
#define BARE_CALL_NS 2000

SUM_TABLE(map_calls, 32768, 8192, struct memtoll_map_key, struct memtoll_map_sum);

#define MAP_STACK_FLAG 0x20000

/*
 * How far above what a thread gives back of its stack at its end its stack pointer is: glibc leaves
 * PTHREAD_STACK_MIN, 16 KiB, and the page it is on (advise_stack_range(), nptl/allocatestack.c).
 */
#define STACK_LEFT_MAX (64ULL << 10)

static __always_inline __u16 mmap_flags(__u64 prot, __u64 flags)
{
	__u16 result = (flags & MAP_FIXED_FLAGS ? MAPPING_FIXED : 0) |
		       (flags & MAP_STACK_FLAG ? MAPPING_STACK : 0) |
		       (flags & MAP_POPULATE_FLAGS ? MAPPING_POPULATE : 0);

	if (flags & MAP_ANONYMOUS)
		return result | MAPPING_ANONYMOUS;
	/* A file mapped executable: the program or the loader brings in code. */
	return prot & PROT_EXEC ? result | MAPPING_EXEC_FILE : result;
}

/* The struct file that mmap is given, 0: none. */
static __always_inline __u64 map_file(const struct open_map_call *map, __u64 fd)
{
	if (map->map_fn != MAP_FN_MMAP || (map->flags & MAPPING_ANONYMOUS))
		return 0;
	return current_file(fd);
}

/*
 * A thread's own stack, but for what is in use, is given back: nobody but the C library does that,
 * at the thread's end. The names of what it does there are in no symbol table of most systems.
 */
static __always_inline bool gives_own_stack(struct task_struct *task,
					    const struct open_map_call *map, __u64 sp)
{
#if defined(__TARGET_ARCH_x86)
	__u64 end = map->addr + map->len, control_block = task->thread.fsbase;

	return map->map_fn == MAP_FN_MADVISE && map->arg == MADV_DONTNEED_CODE && sp >= end &&
	       sp - end < STACK_LEFT_MAX && control_block >= sp &&
	       control_block - map->addr <= THREAD_STACK_MAX;
#else
	return false;
#endif
}

/*
 * Whether the mapping is one of shared memory, a memfd or a file of tmpfs: then it is the program's
 * own as an anonymous one is. Not where it replaces another, which that one would leave cleared.
 */
static __always_inline bool maps_shared_memory(__u64 prot, __u64 flags, __u64 file)
{
	__u64 magic;

	if (!file || !(flags & MAP_SHARED) || (flags & MAP_FIXED_FLAGS) || (prot & PROT_EXEC))
		return false;
	magic = BPF_CORE_READ((struct file *)file, f_inode, i_sb, s_magic);
	return magic == TMPFS_SUPER_MAGIC || magic == HUGETLBFS_SUPER_MAGIC;
}

/*
 * How much shmdt takes away: all of a segment, however its areas were split. 0: none is attached
 * there. (ksys_shmdt())
 */
static __always_inline __u64 segment_bytes(__u64 address)
{
	struct vm_area_struct *area = (struct vm_area_struct *)vma_find(address);
	struct file *file = area ? BPF_CORE_READ(area, vm_file) : NULL;
	__u64 magic;

	if (!file || BPF_CORE_READ(area, vm_start) != address)
		return 0;
	magic = BPF_CORE_READ(file, f_inode, i_sb, s_magic);
	return magic == TMPFS_SUPER_MAGIC || magic == HUGETLBFS_SUPER_MAGIC ?
		       BPF_CORE_READ(file, f_inode, i_size) :
		       0;
}

int map_begin(struct thread *thread, __s32 nr)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct open_map_call *map;
	struct pt_regs *regs;
	__u64 file;

	if (!thread)
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	map = &thread->map;
	map->timed_ns = 0;
	map->by_lock = 0;
	if (nr == NR_MPROTECT)
		arena_extended(thread, PT_REGS_PARM1_SYSCALL(regs));
	else
		map->timed_ns = rate_map();
	/* The faults so far are on mappings as they were. */
	fault_settle(thread);
	map->map_fn = map_fn_of(nr);
	map->addr = PT_REGS_PARM1_SYSCALL(regs);
	map->len = PT_REGS_PARM2_SYSCALL(regs);
	map->arg = PT_REGS_PARM3_SYSCALL(regs);
	if (map->map_fn == MAP_FN_BRK) {
		map->len = map->addr;
		map->addr = current_heap_top();
	} else if (map->map_fn == MAP_FN_MLOCKALL) {
		map->addr = 0;
		map->len = 0;
	} else if (nr == NR_SHMDT) {
		map->len = segment_bytes(map->addr);
	}
	map->minor_before = task->min_flt;
	map->major_before = task->maj_flt;
	map->minor = 0;
	map->major = 0;
	map->reclaim_cpu_ns = 0;
	map->uncounted = 0;
	map->flags = map->map_fn == MAP_FN_MMAP ?
			     mmap_flags(map->arg, PT_REGS_PARM4_SYSCALL(regs)) :
		     gives_own_stack(task, map, PT_REGS_SP(regs)) ? MAPPING_STACK :
								    0;
	map->draw = nr == NR_SHMDT ? MAP_LOOKED_AT : map_draw(thread);
	if (map->draw == MAP_PASSED) {
		map->may_populate = 0;
		map->start.ns = bpf_ktime_get_ns();
		return 0;
	}
	file = map_file(map, PT_REGS_PARM5_SYSCALL(regs));
	populate_begin(thread, file);
	if (maps_shared_memory(map->arg, PT_REGS_PARM4_SYSCALL(regs), file))
		map->flags |= MAPPING_ANONYMOUS;
	stamp_take(task, &map->start);
	return 0;
}

/*
 * What would be missed while calls rest: what 6.17 and later does without the lock of all mappings
 * (mm/madvise.c, get_lock_mode()), and what faults pages in at once.
 */
static __always_inline bool is_missed_resting(const struct open_map_call *map)
{
	if (map->map_fn == MAP_FN_MADVISE &&
	    (map->arg == MADV_DONTNEED_CODE || map->arg == MADV_FREE_CODE ||
	     map->arg == MADV_DONTNEED_LOCKED_CODE))
		return true;
	return map->may_populate && map->map_fn != MAP_FN_MUNMAP && map->map_fn != MAP_FN_MPROTECT;
}

SEC("?tp_btf/sys_enter")
int map_enter(__u64 *ctx)
{
	struct thread *thread = thread_get(bpf_get_current_task_btf());

	if (!thread)
		return 0;
	thread->unbegun = 0;
	if (!calls_are_watched())
		return 0;
	map_begin(thread, ctx[1]);
	if (is_missed_resting(&thread->map))
		rate_advice();
	return 0;
}

/* Where stacks are too many to be looked at, one in several is, and stands for those after it. */
static __always_inline bool stack_is_held(struct thread *thread, const struct held_stack *held,
					  const struct pt_regs *regs)
{
	return fault_draw != ~0U && held->ip == regs->ip && held->sp == regs->sp &&
	       ++thread->held_draws * ROOT_OF_TWO > fault_draw;
}

static __always_inline __u64 stack_of_map_call(struct task_struct *task, struct thread *thread)
{
	struct held_stack *held = &thread->held[thread->map.map_fn & (HELD_STACKS - 1)];
	struct memtoll_rates *rates = rates_here();
	struct pt_regs *regs;

	if (thread->map.timed_ns)
		thread->map.walked_ns = walked_ns();
	/* The whole of it: the direct caller may be a wrapper that everybody calls. */
	if (thread->in_fn)
		return stack_from_call(thread);
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	if (thread->map.draw != MAP_DRAWN && stack_is_held(thread, held, regs)) {
		if (rates)
			rates->held_calls++;
		return held->stack_id;
	}
	/* libc's wrappers of these calls keep nothing on the stack but the return address. */
	held->stack_id = memo_stack(thread, regs, true);
	held->ip = regs->ip;
	held->sp = regs->sp;
	if (rates)
		rates->walked_calls++;
	return held->stack_id;
}

/* Those of a kind, counted since one was looked at, get to its place in the sums. */
static __always_inline void passed_settle(struct thread *thread, __u32 tgid, __u32 map_fn)
{
	static const struct memtoll_map_sum zero;
	struct passed_calls *passed = &thread->passed_maps[map_fn & (PASSED_KINDS - 1)];
	struct memtoll_map_key key = {
		.tgid = tgid,
		.map_fn = map_fn,
		.stack_id = passed->stack_id,
	};
	struct memtoll_map_sum *sum;

	if (!passed->calls)
		return;
	sum = row_get(&map_calls, &map_calls_shared, &key, &zero);
	if (sum) {
		__sync_fetch_and_add(&sum->calls, passed->calls);
		__sync_fetch_and_add(&sum->cpu_ns, passed->calls * passed->cpu_ns);
		__sync_fetch_and_add(&sum->failed, passed->failed);
		__sync_fetch_and_add(&sum->bytes, passed->bytes);
	} else {
		lose(LOST_MAPS_FULL, passed->calls);
	}
	passed->calls = 0;
	passed->failed = 0;
	passed->bytes = 0;
}

int maps_settle(struct thread *thread, __u32 tgid)
{
	if (!thread)
		return 0;
	passed_settle(thread, tgid, MAP_FN_MMAP);
	passed_settle(thread, tgid, MAP_FN_MUNMAP);
	return 0;
}

/* One is looked at, which speaks for those that come. */
static __always_inline void passed_begin(struct thread *thread, const struct memtoll_mapping *event)
{
	struct passed_calls *passed = passed_calls_of(thread);

	maps_settle(thread, event->tgid);
	/* Where memory is locked what a call faults in is looked at each time. */
	passed->stack_id = thread->map.may_populate ? 0 : event->stack_id;
	passed->cpu_ns = event->cpu_ns;
}

static __always_inline void map_count(struct task_struct *task, struct thread *thread,
				      const struct memtoll_mapping *event, __u64 bytes)
{
	static const struct memtoll_map_sum zero;
	struct memtoll_map_key key = {
		.tgid = task->tgid,
		.map_fn = event->map_fn,
		.in_fn = event->in_fn,
		.stack_id = event->stack_id,
	};
	struct memtoll_map_sum *sum = row_get(&map_calls, &map_calls_shared, &key, &zero);

	if (thread->map.draw == MAP_DRAWN)
		passed_begin(thread, event);
	if (!sum) {
		lose(LOST_MAPS_FULL, 1);
		return;
	}
	__sync_fetch_and_add(&sum->calls, 1);
	__sync_fetch_and_add(&sum->cpu_ns, event->cpu_ns);
	if (thread->populated.faults) {
		__sync_fetch_and_add(&sum->populated, thread->populated.faults);
		__sync_fetch_and_add(&sum->populated_ns, thread->populated.cpu_ns);
	}
	if (thread->map.failed)
		__sync_fetch_and_add(&sum->failed, 1);
	else
		__sync_fetch_and_add(&sum->bytes, bytes);
}

/* In the allocator's call that made it; the kinds for its record, should it take long. */
static __always_inline void call_add_mapping(struct open_call *call,
					     const struct memtoll_mapping *event, __u64 wall_ns)
{
	if (!call->map_calls) {
		__builtin_memset(call->inside.map_calls, 0, sizeof(call->inside.map_calls));
		call->inside.map_ns = 0;
	}
	call->map_calls++;
	call->map_cpu_ns += event->cpu_ns;
	call->inside.map_ns += wall_ns;
	if (event->map_fn < MAP_FN_IN_CALLS)
		call->inside.map_calls[event->map_fn]++;
	if (event->map_fn == MAP_FN_MREMAP && (event->result > 0 || event->result < -4095))
		call->remapped = 1;
}

/* What the kernel has faulted in inside the call for the thread, which raised no event. */
static __always_inline void find_populated(struct task_struct *task, struct thread *thread)
{
	const struct open_map_call *map = &thread->map;
	struct populated *populated = &thread->populated;

	populated->majors = sub_sat(task->maj_flt - map->major_before, map->major);
	populated->faults =
		sub_sat(task->min_flt - map->minor_before, map->minor) + populated->majors;
	thread->order.minor_seen += populated->faults - populated->majors;
}

/* Seldom, and with many branches: a function that the verifier looks at once. */
__noinline int describe_populated(struct thread *thread, __u64 now)
{
	const struct memtoll_mapping *event;
	struct populated *populated;
	struct open_map_call *map;
	__u64 bare_ns;

	if (!thread)
		return 0;
	event = &thread->mapping;
	populated = &thread->populated;
	map = &thread->map;
	bare_ns = event->cpu_ns / 2;
	/* Of what grows the new part; of mremap its end. */
	populated->address = event->addr;
	populated->len = event->len;
	if (map->map_fn == MAP_FN_MMAP)
		populated->address = event->result;
	else if (map->map_fn == MAP_FN_BRK)
		populated->len = sub_sat(event->result, event->addr);
	else if (map->map_fn == MAP_FN_MREMAP && event->arg > event->len) {
		populated->address = event->result + event->len;
		populated->len = event->arg - event->len;
	}
	populated->cpu_ns = event->cpu_ns - (bare_ns < BARE_CALL_NS ? bare_ns : BARE_CALL_NS);
	populated->blocked_ns = sub_sat(now - map->start.ns, event->cpu_ns);
	populated->now = now;
	populated->stack_id = event->stack_id;
	populated->reads = map->map_fn == MAP_FN_MADVISE && event->arg == MADV_POPULATE_READ_CODE;
	return 0;
}

/*
 * The thread was met in this call, whose begin was not seen: the faults that the kernel has taken in
 * it belong to the time before. There are no others since then, as it has not left the kernel.
 */
static __always_inline void leave_unbegun(struct task_struct *task, struct thread *thread)
{
	if (!thread->unbegun)
		return;
	thread->unbegun = 0;
	thread->minor_base = task->min_flt;
	thread->major_base = task->maj_flt;
}

static __always_inline bool has_failed(__s64 ret)
{
	return ret < 0 && ret > -4096;
}

static __always_inline bool is_shmat(const __u64 *ctx)
{
	return syscall_nr((const struct pt_regs *)ctx[0]) == NR_SHMAT;
}

/*
 * A segment of System V shared memory was attached at the address: to the ledger a mapping like any
 * other. How long it is only its area tells. The call itself takes next to no time, so its entry is
 * not watched; it counts as begun now. Whether it does: 0 where there is no segment.
 */
__noinline int shmat_begin(struct thread *thread, __u64 address)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct vm_area_struct *area;
	struct open_map_call *map;

	if (!thread || !calls_are_watched())
		return 0;
	area = (struct vm_area_struct *)vma_find(address);
	if (!area || BPF_CORE_READ(area, vm_start) != address)
		return 0;
	map = &thread->map;
	map->map_fn = MAP_FN_MMAP;
	map->by_lock = 0;
	map->uncounted = 1;
	map->timed_ns = 0;
	map->draw = MAP_LOOKED_AT;
	map->addr = address;
	map->len = BPF_CORE_READ(area, vm_end) - address;
	map->arg = 0;
	map->flags = MAPPING_ANONYMOUS;
	map->may_populate = 0;
	map->minor_before = task->min_flt;
	map->major_before = task->maj_flt;
	map->minor = 0;
	map->major = 0;
	map->reclaim_cpu_ns = 0;
	stamp_take(task, &map->start);
	return 1;
}

/* What its programs took, before and after its own time. */
static __always_inline void map_end(struct open_map_call *map, __u64 ended_ns)
{
	__u64 ns;

	if (map->timed_ns) {
		ns = map->start.ns - map->timed_ns + bpf_ktime_get_ns() - ended_ns;
		if (is_passed(map))
			rate_passed_map_part(ns);
		else
			rate_map_part(ns, map->walked_ns);
	}
	map->map_fn = MAP_FN_NONE;
}

/* Looked up once more: before 6.2 an argument is no value that a map would take (its stack). */
int map_finish(__s64 ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_find(task);
	struct memtoll_mapping *event;
	struct open_map_call *map;
	__u64 bytes, now;

	if (!thread)
		return 0;
	find_populated(task, thread);
	map = &thread->map;
	map->failed = has_failed(ret);
	if (map->map_fn == MAP_FN_MPROTECT)
		__sync_fetch_and_add(&area_generation, 1);
	if (map->map_fn == MAP_FN_MPROTECT && !thread->populated.faults) {
		map->map_fn = MAP_FN_NONE;
		return 0;
	}
	now = is_passed(map) && !map->timed_ns ? map->start.ns : bpf_ktime_get_ns();
	if (!in_map(thread)) {
		map->map_fn = MAP_FN_NONE;
		lose(LOST_MAPS_UNWATCHED, 1);
		return 0;
	}
	event = &thread->mapping;
	event->kind = EVENT_MAPPING;
	event->cpu_ns = is_passed(map) ? 0 : stamp_cpu_ns(task, &map->start, now);
	event->cpu_ns = sub_sat(event->cpu_ns, map->reclaim_cpu_ns);
	event->tgid = task->tgid;
	event->tid = task->pid;
	event->map_fn = map->map_fn;
	event->in_fn = thread->in_fn;
	event->in_size = thread->in_fn ? thread->call.size : 0;
	event->addr = map->addr;
	event->len = map->len;
	event->arg = map->arg;
	event->result = ret;
	event->start_ns = map->start.ns;
	event->flags = map->flags;
	bytes = map->len;
	if (map->map_fn == MAP_FN_BRK) {
		/* brk returns the break; asked 0, or refused, it returns the present one. */
		map->failed = map->len && (__u64)ret != map->len;
		bytes = (__u64)ret > map->addr ? ret - map->addr : map->addr - ret;
	}
	event->stack_id = is_passed(map) ? passed_calls_of(thread)->stack_id :
					   stack_of_map_call(task, thread);
	if (thread->populated.faults)
		describe_populated(thread, now);
	if (thread->in_fn)
		call_add_mapping(&thread->call, event, now - map->start.ns);
	if (is_passed(map))
		map_pass(thread, bytes);
	else if (!map->uncounted)
		map_count(task, thread, event, bytes);
	if (!map->failed && map->map_fn < MAP_FN_IN_CALLS) {
		__sync_fetch_and_add(&area_generation, 1);
		fault_settle(thread);
		run_emit(thread);
		emit(event, sizeof(*event), LOST_RING_MAPPING, 1, map->flags & MAPPING_EXEC_FILE);
	}
	/* It lies in the mapping that the record before it has made. */
	if (thread->populated.faults)
		populate_end(thread);
	map_end(map, now);
	return 0;
}

SEC("?tp_btf/sys_exit")
int map_exit(__u64 *ctx)
{
	__s64 ret = ctx[1];
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_find(task);
	bool begun;

	/* A thread may be met in such a call: what it attaches must not be missed. */
	if (!thread && is_shmat(ctx))
		thread = thread_get(task);
	/* Before the clock is read: most are others'. */
	if (!thread || !is_counted(thread))
		return 0;
	begun = is_shmat(ctx) ? !has_failed(ret) && shmat_begin(thread, ret) : thread->map.map_fn;
	if (begun)
		map_finish(ret);
	else
		leave_unbegun(task, thread);
	return 0;
}
