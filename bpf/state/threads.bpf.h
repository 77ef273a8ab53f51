/* SPDX-License-Identifier: GPL-2.0 */
/*
 * threads.bpf.h: where the state of a thread is (struct thread), and which threads have one.
 * threads.bpf.c makes states, and gives their places back.
 */
#ifndef MEMTOLL_THREADS_BPF_H
#define MEMTOLL_THREADS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/sums.h"
#include "state/fault_rest.bpf.h"
#include "state/losses.bpf.h"
#include "state/numbers.bpf.h"
#include "state/processes.bpf.h"
#include "state/read_rest.bpf.h"
#include "state/settings.bpf.h"
#include "state/thread.bpf.h"
#include "state/windows.bpf.h"

/*
 * The states of threads. Nearly every one has a place in an array, by its number: that is looked up
 * in line, task-local storage by calls into the kernel, which cost 40 ns on some machines. Of two
 * threads with one place the later one's state is in task-local storage.
 */
#define THREAD_PLACES 512 /* a power of two */
#define OWNER_PID_SHIFT 32
#define PF_EXITING 0x4			   /* include/linux/sched.h */
extern __u64 thread_owners[THREAD_PLACES]; /* thread_owner(), or PLACE_* */

struct thread_places_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, THREAD_PLACES);
	__type(key, __u32);
	__type(value, struct thread);
};
extern struct thread_places_map thread_places SEC(".maps");

struct threads_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
};
extern struct threads_map threads SEC(".maps");

struct thread *thread_create(struct task_struct *task) __hidden;

/* Differs between tasks that have had the same number; never a PLACE_*. */
static __always_inline __u64 thread_owner(const struct task_struct *task)
{
	return (__u64)task->pid << OWNER_PID_SHIFT | (__u32)(task->start_time >> 10);
}

/* The state of a traced process's thread that was met before. */
static __always_inline struct thread *thread_of(struct task_struct *task)
{
	__u32 place = task->pid & (THREAD_PLACES - 1);

	if (thread_owners[place] == thread_owner(task))
		return bpf_map_lookup_elem(&thread_places, &place);
	return bpf_task_storage_get(&threads, task, NULL, 0);
}

/* While threads are stopped one after the other it goes on until its turn. */
static __always_inline bool is_counted(const struct thread *thread)
{
	return !stopped || (stopped == STOPPING && !thread->counted_out);
}

/* The state of a traced thread, as it was found, or NULL for everybody else. */
static __always_inline struct thread *thread_check(struct task_struct *task, struct thread *thread)
{
	if (thread ? !is_counted(thread) : stopped)
		return NULL;
	if (!thread)
		return thread_create(task);
	if (thread->in_fn && thread->call.start.ns < detached_ns[thread->in_fn & FN_MASK]) {
		thread->in_fn = FN_NONE;
		lose(LOST_WINDOW_CUT, 1);
	}
	return thread;
}

/* The one filter, passed first. */
static __always_inline struct thread *thread_get(struct task_struct *task)
{
	return may_be_traced(task->tgid) ? thread_check(task, thread_of(task)) : NULL;
}

/* Of a thread that was met before; of none a state is made. */
static __always_inline struct thread *thread_find(struct task_struct *task)
{
	return may_be_traced(task->tgid) ? thread_of(task) : NULL;
}

/* Whether it has faults from before its process was traced. */
static __always_inline bool is_older(const struct task_struct *task,
				     const struct memtoll_target_state *process)
{
	return task->start_time < process->begun_ns;
}

/*
 * The thread is counted no further: what the kernel has counted for it since our own counting
 * began, at its first event, goes into its process's sum. In the same moment for each thread, so
 * that both counts are of the same faults. thread: NULL where it was never met.
 */
static __always_inline void count_out(const struct task_struct *task, struct thread *thread,
				      struct memtoll_target_state *process)
{
	__u64 minor = task->min_flt, major = task->maj_flt;

	if (thread) {
		/* It may end while another processor counts it. */
		if (__sync_val_compare_and_swap(&thread->counted_out, 0, 1))
			return;
		/* Of a call that it is in nothing will be counted. */
		if (in_map(thread)) {
			minor = thread->map.minor_before + thread->map.minor;
			major = thread->map.major_before + thread->map.major;
		} else if (in_read(thread)) {
			minor = thread->read.minor_before + thread->read.faults;
		}
		rest_count_out(task, sub_sat(minor, thread->order.minor_seen));
		minor = sub_sat(minor, thread->minor_base);
		major = sub_sat(major, thread->major_base);
	} else if (is_older(task, process)) {
		return;
	} else {
		rest_count_out(task, minor);
	}
	__sync_fetch_and_add(&process->counted_minor_faults, minor);
	__sync_fetch_and_add(&process->counted_major_faults, major);
}

/* When a thread ends. */
static __always_inline void give_place_back(struct task_struct *task)
{
	__u64 *owner = &thread_owners[task->pid & (THREAD_PLACES - 1)];

	if (*owner == thread_owner(task))
		*owner = PLACE_FREE;
}

/*
 * A thread that calls exec and is not its process's first takes that one's number and start time
 * (de_thread in fs/exec.c), and leaves the place of its own behind.
 */
static __always_inline bool left_place(struct task_struct *task, __u32 old_pid)
{
	return (__u32)task->pid != old_pid &&
	       thread_owners[old_pid & (THREAD_PLACES - 1)] >> OWNER_PID_SHIFT == old_pid;
}

#endif /* MEMTOLL_THREADS_BPF_H */
