// SPDX-License-Identifier: GPL-2.0
/* threads.bpf.c: states of threads are made and given back. */
#include "state/threads.bpf.h"

struct threads_map threads SEC(".maps");

__u64 thread_owners[THREAD_PLACES];

struct thread_places_map thread_places SEC(".maps");

#define CLEARED __builtin_offsetof(struct thread, stack)

/*
 * Not the scratch, which is most of it: of programs that make threads all the time each one would
 * take a microsecond. What it cannot read the helper makes zeros of, at one go: what a program has
 * passed to it is filled in any case (bpf_probe_read_kernel_common() in kernel/trace/bpf_trace.c). As
 * stores they would be hundreds, and the verifier would look at each in nearly every program.
 */
__noinline int thread_clear(struct thread *thread)
{
	if (!thread)
		return 0;
	bpf_probe_read_kernel(thread, CLEARED, NULL);
	/* Of the interpreter's last thread, which is looked at first. */
	thread->python.state = 0;
	thread->sample_python.state = 0;
	return 0;
}

/* NULL: the place is taken, or would never be given back, as the exit of this thread has passed. */
static __always_inline struct thread *take_place(struct task_struct *task)
{
	__u32 place = task->pid & (THREAD_PLACES - 1);
	__u64 *owner = &thread_owners[place];
	struct thread *thread;

	if (task->flags & PF_EXITING ||
	    __sync_val_compare_and_swap(owner, PLACE_FREE, PLACE_BEING_TAKEN) != PLACE_FREE)
		return NULL;
	thread = bpf_map_lookup_elem(&thread_places, &place);
	if (thread)
		thread_clear(thread);
	*owner = thread_owner(task);
	return thread;
}

static __always_inline void thread_begin(struct task_struct *task, struct thread *thread,
					 const struct memtoll_target_state *process, __u64 began_ns)
{
	thread->drained = drain_epoch;
	thread->made_ns = bpf_ktime_get_ns() - began_ns;
	read_rest_begin(task, thread, is_older(task, process));
	if (!is_older(task, process))
		return;
	thread->order.minor_seen = task->min_flt;
	thread->minor_base = task->min_flt;
	thread->major_base = task->maj_flt;
	thread->unbegun = 1;
}

__hidden struct thread *thread_create(struct task_struct *task)
{
	__u32 tgid = task->tgid;
	struct memtoll_target_state *process = process_state_get(tgid);
	struct thread *thread;
	__u64 began_ns;

	if (!process || process->exec_pending)
		return NULL;
	began_ns = bpf_ktime_get_ns();
	thread = take_place(task);
	if (!thread)
		thread = bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread)
		lose(LOST_THREAD_STATE, 1);
	else
		thread_begin(task, thread, process, began_ns);
	/* From the second thread on there may be waiting for locks. */
	if ((__u32)task->pid != tgid && !lock_suspected)
		lock_suspected = 1;
	return thread;
}
