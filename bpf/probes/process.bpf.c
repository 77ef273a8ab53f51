// SPDX-License-Identifier: GPL-2.0
/* process.bpf.c: fork, exec and exit of the target, and the last drain. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "wire/pages.h"
#include "wire/records.h"
#include "wire/targets.h"
#include "state/emit.bpf.h"
#include "state/losses.bpf.h"
#include "state/numbers.bpf.h"
#include "state/processes.bpf.h"
#include "state/rates.bpf.h"
#include "state/settings.bpf.h"
#include "state/threads.bpf.h"
#include "stacks/stack.bpf.h"
#include "probes/fault.bpf.h"
#include "probes/fault_streams.bpf.h"
#include "probes/mapping.bpf.h"
#include "probes/page_cache.bpf.h"
#include "probes/populate.bpf.h"
#include "probes/read.bpf.h"

/*
 * To look at a new process takes userspace the better part of a millisecond, which the overhead
 * limit pays for so often (start_every_ns; 0: it has no limit), and for START_BURST at once. Where
 * they come faster they are a storm until they no longer do: one in STORM_TIMES as long is looked
 * at, and the others are brief: looked at when they have lived for some time. Until then all that
 * they do is counted, but for what needs their code: calls of the allocator, and the stacks of
 * programs that are new.
 */
#define START_BURST 64
#define STORM_TIMES 4
#define STORM_OVER_NS 1000000000ULL

__u64 start_every_ns = 0;
__u64 starts_until_ns = 0; /* so far those are paid for that have come */
__u64 storm_look_ns = 0;   /* the next of a storm to be looked at comes after that */

static __always_inline bool start_is_brief(__u64 now)
{
	__u64 spent_ns = starts_until_ns < now ? now : starts_until_ns;
	__u64 most_ns = START_BURST * start_every_ns;

	if (!start_every_ns)
		return false;
	spent_ns += start_every_ns;
	if (spent_ns - now <= most_ns) {
		starts_until_ns = spent_ns;
		return false;
	}
	starts_until_ns =
		spent_ns < now + most_ns + STORM_OVER_NS ? spent_ns : now + most_ns + STORM_OVER_NS;
	if (now < storm_look_ns)
		return true;
	storm_look_ns = now + STORM_TIMES * start_every_ns;
	return false;
}

/* CPU time of its threads but the first, as far as it is in the scheduler's books. */
static __always_inline __u64 others_cpu_ns(struct task_struct *task)
{
	__u64 ns = BPF_CORE_READ(task, signal, sum_sched_runtime);

	return task->pid == task->tgid ? ns : ns + task->se.sum_exec_runtime;
}

/* held: a tracer follows the process, by the thread that stands for it. */
static __always_inline void emit_process(struct task_struct *task, __u32 what, __u32 other,
					 bool held, bool brief,
					 const struct memtoll_target_state *ended)
{
	struct memtoll_process event = {
		.kind = EVENT_PROCESS,
		.tgid = task->tgid,
		.tid = task->pid,
		.what = what,
		.other = other,
		.exit_code = task->exit_code,
		.time_ns = bpf_ktime_get_ns(),
		.held = held,
		.brief = brief,
	};

	if (ended) {
		event.minor_faults = ended->counted_minor_faults;
		event.major_faults = ended->counted_major_faults;
		event.cpu_ns = ended->others_cpu_ns +
			       BPF_CORE_READ(task, group_leader, se.sum_exec_runtime);
	}
	bpf_probe_read_kernel(event.comm, sizeof(event.comm), task->comm);
	/* A new program has other code: until that is known its stacks cannot be walked. */
	emit(&event, sizeof(event), LOST_RING_PROCESS, 1,
	     !brief && what != PROCESS_FREED &&
		     (what == PROCESS_EXEC || wake_is_due(event.time_ns)));
}

/* Emit what a thread has open. */
static __always_inline void thread_flush(struct task_struct *task, struct thread *thread)
{
	if (!thread)
		return;
	fault_settle(thread);
	run_emit(thread);
	sweep_end(thread);
	reads_emit(thread);
	fills_emit(thread);
	maps_settle(thread, task->tgid);
	passes_flush(task, thread);
}

static __always_inline void process_remove(__u32 tgid)
{
	if (!bpf_map_delete_elem(&processes, &tgid))
		process_filter_add(tgid, -1);
	bpf_map_delete_elem(&process_states, &tgid);
}

/* The row of a new process. Counted in the filter first, so that it is never missed. */
static __always_inline long process_add(__u32 tgid, const struct memtoll_target *row, bool brief)
{
	const struct memtoll_target_state state = {};
	struct memtoll_target *added;
	long err;

	process_filter_add(tgid, 1);
	err = bpf_map_update_elem(&process_states, &tgid, &state, BPF_ANY);
	if (!err)
		err = bpf_map_update_elem(&processes, &tgid, row, BPF_NOEXIST);
	if (!err) {
		/* It does not run yet. */
		added = bpf_map_lookup_elem(&processes, &tgid);
		if (added)
			added->brief = brief;
		return 0;
	}
	/* Userspace may have found it in its group, and made its row: the state is that row's. */
	if (err != -EEXIST)
		bpf_map_delete_elem(&process_states, &tgid);
	process_filter_add(tgid, -1);
	return err;
}

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct *parent, struct task_struct *child)
{
	const struct memtoll_target_state *state;
	const struct memtoll_target *process;
	struct memtoll_rates *rates;
	__u32 tgid = child->tgid;
	__u64 began_ns;
	bool brief;

	if (child->tgid == parent->tgid)
		return 0;
	/*
	 * Where its number was a traced process's, that has ended, and this is another. An ended
	 * one keeps its row until then, as its last thread still has memory to give back.
	 */
	if (process_get(tgid))
		process_remove(tgid);
	process = process_get(parent->tgid);
	state = process_state_get(parent->tgid);
	if (!process || !state || state->exec_pending)
		return 0;
	began_ns = bpf_ktime_get_ns();
	brief = start_is_brief(began_ns) && !child->ptrace;
	briefs_seen |= brief;
	rates = rates_here();
	if (rates)
		rates->brief_starts += brief;
	if (process_add(tgid, process, brief)) {
		lose(LOST_PROCESSES_FULL, 1);
		return 0;
	}
	emit_process(parent, PROCESS_FORK, tgid, child->ptrace != 0, brief, NULL);
	thread_account(parent->tgid, bpf_ktime_get_ns() - began_ns);
	return 0;
}

/*
 * The kernel has put arguments and environment on the new stack: get_user_pages() takes those faults
 * (get_arg_page() in fs/exec.c), which raise no event, and are in the thread's count.
 */
static __always_inline void account_arguments(struct task_struct *task, struct thread *thread)
{
	__u64 begin = BPF_CORE_READ(task, mm, arg_start) & ~(__u64)(MEMTOLL_PAGE_SIZE - 1);
	__u64 pages = (BPF_CORE_READ(task, mm, env_end) - begin - 1) / MEMTOLL_PAGE_SIZE + 1;

	/* A quarter of the largest stack there may be. */
	if (!begin || pages > 1 << 20)
		return;
	thread->map.may_populate = 0;
	__builtin_memset(&thread->populated, 0, sizeof(thread->populated));
	thread->populated.address = begin;
	thread->populated.faults = pages;
	thread->order.minor_seen += pages;
	thread->populated.now = bpf_ktime_get_ns();
	populate_end(thread);
}

static __always_inline void on_exec(struct task_struct *task, struct memtoll_target *process,
				    struct thread *thread, __u32 old_pid)
{
	struct memtoll_target_state *state;
	bool counted;
	__u32 i;

	if (thread) {
		thread->fault.root = 0;
		thread->in_fn = FN_NONE;
		/* Of another program's code, which may have been at the same address. */
		for (i = 0; i < HELD_STACKS; i++)
			thread->held[i].ip = 0;
	}
	thread_flush(task, thread);
	if (thread)
		__builtin_memset(thread->passed_maps, 0, sizeof(thread->passed_maps));
	process->memset_count = 0;
	process->memcpy_count = 0;
	process->calloc[0] = 0;
	process->unwind_table = 0;
	process->python.kind = PYTHON_NONE;
	state = process_state_get(task->tgid);
	counted = state && !state->exec_pending && thread && (__u32)task->pid == old_pid;
	if (state && state->exec_pending) {
		/* What it did before was the tracer's own image. */
		state->begun_ns = bpf_ktime_get_ns();
		state->exec_pending = 0;
		thread_create(task);
	} else if (state && thread && (__u32)task->pid != old_pid) {
		/* It has another number now, and a new state at its next event, if it had a place. */
		count_out(task, thread, state);
		state->begun_ns = bpf_ktime_get_ns();
		thread->order.minor_seen = task->min_flt;
		thread->minor_base = task->min_flt;
		thread->major_base = task->maj_flt;
		thread->unbegun = 1;
		thread->counted_out = 0;
	}
	__sync_fetch_and_add(&area_generation, 1);
	if (counted)
		account_arguments(task, thread);
	emit_process(task, PROCESS_EXEC, old_pid, task->ptrace != 0, process->brief, NULL);
}

SEC("?tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct *task, pid_t old_pid)
{
	struct memtoll_target *process = process_get(task->tgid);
	__u32 place = old_pid & (THREAD_PLACES - 1);
	bool left = left_place(task, old_pid);
	struct thread *thread;

	if (process) {
		thread = left ? bpf_map_lookup_elem(&thread_places, &place) : thread_find(task);
		on_exec(task, process, thread, old_pid);
	}
	/* The verifier does not know what has been a key to lie within bounds. */
	barrier_var(old_pid);
	if (left)
		thread_owners[old_pid & (THREAD_PLACES - 1)] = PLACE_FREE;
	return 0;
}
/*
 * Before 6.16 (kernel commit 0fb482728ba1) the tracepoint has one argument, later two: only the
 * first is used. signal->live has been lowered already, so the last thread sees 0.
 */
SEC("?tp_btf/sched_process_exit")
int BPF_PROG(process_exit, struct task_struct *task)
{
	struct memtoll_target_state *process = process_state_get(task->tgid);
	const struct memtoll_target *row;
	struct thread *thread;
	__u64 began_ns;
	bool held;

	if (process) {
		began_ns = bpf_ktime_get_ns();
		thread = thread_find(task);
		thread_flush(task, thread);
		if (thread && thread->in_fn)
			lose(LOST_RETURN_MISSED, 1);
		/* One that was never met the iterator may have counted. */
		if ((thread ? stopped != STOPPED : !stopped) && !process->exec_pending) {
			if (thread || !is_older(task, process))
				reads_count_out(task, thread);
			count_out(task, thread, process);
		}
		if (BPF_CORE_READ(task, signal, live.counter) == 0) {
			rest_process_ends(task->tgid);
			held = BPF_CORE_READ(task, group_leader, ptrace) != 0;
			process->others_cpu_ns = others_cpu_ns(task);
			process->ended = held ? ENDED_HELD : ENDED_FREE;
			row = process_get(task->tgid);
			emit_process(task, PROCESS_EXIT, 0, held, row && row->brief, process);
		}
		/* Of threads that live for a moment only it is most of what they pay. */
		thread_account(task->tgid,
			       (thread ? thread->made_ns : 0) + bpf_ktime_get_ns() - began_ns);
	}
	give_place_back(task);
	return 0;
}

/*
 * Of its first thread, which is the last to go. What it has run since the kernel last added that up,
 * which is all of a program that ends in its first time slice, is in the books by now.
 */
SEC("?tp_btf/sched_process_free")
int BPF_PROG(process_freed, struct task_struct *task)
{
	const struct memtoll_target_state *process;

	if (task->pid != task->tgid)
		return 0;
	process = process_state_get(task->tgid);
	if (process && process->ended == ENDED_FREE)
		emit_process(task, PROCESS_FREED, 0, false, false, process);
	return 0;
}

/* A thread so young may have begun its faults while others were stopped: then they are not ours. */
#define YOUNG_NS 10000000

/* It lives, and was never met: its faults, if there are any, are of a kind that is not watched. */
static __always_inline bool is_idle(const struct task_struct *task)
{
	return !(task->flags & PF_EXITING) && task->start_time + YOUNG_NS < stopping_ns;
}

/*
 * Twice at the end, when userspace reads the iterator. While the probes are on: counting ends, for
 * each thread together with the kernel's count. After they are off: every thread's open run is
 * emitted here. A thread that has ended, and has no state any more, counted out when it did. And
 * in between, to settle reads that have rested.
 */
SEC("?iter/task")
int drain_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct memtoll_target_state *process;
	struct thread *thread;

	if (!task)
		return 0;
	thread = thread_find(task);
	if (reads_settle) {
		if (thread)
			reads_settle_thread(task, thread);
		return 0;
	}
	if (stopped != STOPPING) {
		thread_flush(task, thread);
		return 0;
	}
	process = process_state_get(task->tgid);
	if (!process || process->exec_pending)
		return 0;
	if (thread)
		reads_count_out(task, thread);
	if (thread || is_idle(task))
		count_out(task, thread, process);
	return 0;
}
