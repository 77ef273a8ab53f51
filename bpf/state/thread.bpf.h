/* SPDX-License-Identifier: GPL-2.0 */
/*
 * thread.bpf.h: where the state of a thread is (struct thread), and which threads have one. A part of
 * memtoll.bpf.h, which includes it; target.bpf.c makes states, and gives their places back.
 */
#ifndef MEMTOLL_THREAD_BPF_H
#define MEMTOLL_THREAD_BPF_H

/*
 * The states of threads. Nearly every one has a place in an array, by its number: that is looked up
 * in line, task-local storage by calls into the kernel, which cost 40 ns on some machines. Of two
 * threads with one place the later one's state is in task-local storage.
 */
#define THREAD_PLACES 512	/* a power of two */
#define OWNER_PID_SHIFT 32
extern __u64 thread_owners[THREAD_PLACES];	/* thread_owner(), or PLACE_* */

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

/* Tells a task from one that had its number before; no PLACE_*. */
static __always_inline __u64 thread_owner(const struct task_struct *task)
{
	return (__u64)task->pid << OWNER_PID_SHIFT | (__u32)(task->start_time >> 10);
}

/*
 * How many rows map `processes` has of numbers with the same lowest bits. The tracepoints run for every
 * process of the machine: nearly all others are passed over by this word, before a helper is called
 * or a map looked up, which would be most of what they pay. Raised before a row is there and lowered
 * after it has gone: never too low.
 */
extern __u32 near_processes[NEAR_PROCESSES];

static __always_inline bool is_near(__u32 tgid)
{
	return near_processes[tgid & (NEAR_PROCESSES - 1)];
}

/* The state of a traced process's thread that was met before. */
static __always_inline struct thread *thread_of(struct task_struct *task)
{
	__u32 place = task->pid & (THREAD_PLACES - 1);

	if (thread_owners[place] == thread_owner(task))
		return bpf_map_lookup_elem(&thread_places, &place);
	return bpf_task_storage_get(&threads, task, NULL, 0);
}

/* The state of a traced thread, as it was found, or NULL for everybody else. */
static __always_inline struct thread *thread_check(struct task_struct *task, struct thread *thread)
{
	if (stopped)
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
	return is_near(task->tgid) ? thread_check(task, thread_of(task)) : NULL;
}

/* Of a thread that was met before; of none a state is made. */
static __always_inline struct thread *thread_find(struct task_struct *task)
{
	return is_near(task->tgid) ? thread_of(task) : NULL;
}

#endif /* MEMTOLL_THREAD_BPF_H */
