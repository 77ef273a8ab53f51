// SPDX-License-Identifier: GPL-2.0
/* threads.bpf.c: states of threads are made and given back. */
#include "state/threads.bpf.h"

struct threads_map threads SEC(".maps");

__u64 thread_owners[THREAD_PLACES];

struct thread_places_map thread_places SEC(".maps");

/* NULL: the place is taken, or would never be given back, as the exit of this thread has passed. */
static __always_inline struct thread *take_place(struct task_struct *task)
{
	__u32 place = task->pid & (THREAD_PLACES - 1);
	__u64 *owner = &thread_owners[place];
	static const struct thread blank;

	if (task->flags & PF_EXITING ||
	    __sync_val_compare_and_swap(owner, PLACE_FREE, PLACE_BEING_TAKEN) != PLACE_FREE)
		return NULL;
	bpf_map_update_elem(&thread_places, &place, &blank, BPF_ANY);
	*owner = thread_owner(task);
	return bpf_map_lookup_elem(&thread_places, &place);
}

static __always_inline void thread_begin(struct task_struct *task, struct thread *thread,
					 const struct memtoll_target_state *process)
{
	thread->drained = drain_epoch;
	if (!is_older(task, process))
		return;
	thread->minor_base = task->min_flt;
	thread->major_base = task->maj_flt;
	thread->unbegun = 1;
}

__hidden struct thread *thread_create(struct task_struct *task)
{
	__u32 tgid = task->tgid;
	struct memtoll_target_state *process = process_state_get(tgid);
	struct thread *thread;

	if (!process || process->exec_pending)
		return NULL;
	thread = take_place(task);
	if (!thread)
		thread = bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread)
		lose(LOST_THREAD_STATE, 1);
	else
		thread_begin(task, thread, process);
	/* From the second thread on there may be waiting for locks. */
	if ((__u32)task->pid != tgid && !lock_suspected)
		lock_suspected = 1;
	return thread;
}
