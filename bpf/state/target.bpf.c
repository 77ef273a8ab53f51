// SPDX-License-Identifier: GPL-2.0
/* target.bpf.c: who is traced; fork, exec, exit. */
#include "state/memtoll.bpf.h"
#include "probes/fault_streams.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define PF_EXITING 0x4		/* include/linux/sched.h */

const volatile __u64 cfg_min_size = 65536;
const volatile __u64 cfg_page_offset = 0xffff888000000000ULL;
const volatile __u32 cfg_page_levels = 4;
const volatile __u64 cfg_zero_pfn = 0;
const volatile __u64 cfg_huge_zero_pfn = 0;
const volatile __u32 cfg_mthp_orders = 0;
const volatile bool cfg_find_vma = true;
const volatile bool cfg_casts = false;
const volatile __u64 cfg_sample = 0;
const volatile __u32 cfg_sampling_log[SAMPLING_LOG_ENTRIES] = {};
const volatile bool cfg_lock_path = false;
const volatile bool cfg_never = false;

volatile __u32 drain_epoch = 0;
volatile __u32 stopped = 0;
volatile __u32 area_generation = 1;
volatile __u32 blocks_told = 0;
volatile __u32 ends_seen = 0;
volatile __u32 python_seen = 0;
volatile __u32 closed_fns = 0;
volatile __u64 open_until_ns = ~0ULL;
volatile __u64 shut_ns = 0;
volatile __u64 timed_until_ns = ~0ULL;
volatile __u64 timed_shut_ns = 0;
volatile __u64 detached_ns[FN_MASK + 1] = {};
volatile __u64 woken_position = 0;
/* A stack is in the table that stack_tell() could not tell of. */
volatile __u32 stacks_untold = 0;
volatile __u64 reads_watched_ns = 0;
volatile __u64 calls_watched_ns = 0;
volatile __u32 price_inside_ns[FN_COUNT] = {};
volatile __u32 price_fault_ns = 0;
volatile __s64 outliers_left = 256;
volatile __s64 preempted_left = 32;
volatile __u64 outlier_floor_ns = 50000;
volatile __u32 lock_suspected = 0;

struct threads_map threads SEC(".maps");

__u64 thread_owners[THREAD_PLACES];
__u32 near_processes[NEAR_PROCESSES];

struct thread_places_map thread_places SEC(".maps");

struct processes_map processes SEC(".maps");

struct events_map events SEC(".maps");

struct losses_map losses SEC(".maps");

struct rates_map rates SEC(".maps");

int lose(__u32 what, __u64 count)
{
	__u64 *counter = bpf_map_lookup_elem(&losses, &what);

	if (counter)
		__sync_fetch_and_add(counter, count);
	return 0;
}

/*
 * A wake-up costs the target 1 to 6 us: userspace polls, and is woken only by much data, once for so
 * much: who was woken is on the way.
 */
#define WAKEUP_BYTES (256 * 1024)

int much_is_waiting(void)
{
	__u64 position;

	if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < WAKEUP_BYTES)
		return 0;
	position = bpf_ringbuf_query(&events, BPF_RB_PROD_POS);
	if (position - woken_position < WAKEUP_BYTES)
		return 0;
	/* Of two CPUs here at once both wake: it is rare. */
	woken_position = position;
	return 1;
}

/*
 * Whose stacks are in the table, so that userspace finds a process's without looking through all. No
 * figure is lost with it.
 */
int stack_tell(__u32 tgid, __u64 id)
{
	struct memtoll_new_stack event = { .kind = EVENT_STACK, .tgid = tgid, .id = id };

	if (bpf_ringbuf_output(&events, &event, sizeof(event), BPF_RB_NO_WAKEUP))
		stacks_untold = 1;
	return 0;
}

/* NULL: it is another's, or nobody would give it back: of this thread no exit is to come. */
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

static __always_inline void give_place_back(struct task_struct *task)
{
	__u64 *owner = &thread_owners[task->pid & (THREAD_PLACES - 1)];

	if (*owner == thread_owner(task))
		*owner = PLACE_FREE;
}

__hidden struct thread *thread_create(struct task_struct *task)
{
	__u32 tgid = task->tgid;
	struct memtoll_target *process = process_get(tgid);
	struct thread *thread;

	if (!process || process->exec_pending)
		return NULL;
	thread = take_place(task);
	if (!thread)
		thread = bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread)
		lose(LOST_THREAD_STATE, 1);
	else
		thread->drained = drain_epoch;
	/* From the second thread on there may be waiting for locks. */
	if ((__u32)task->pid != tgid && !lock_suspected)
		lock_suspected = 1;
	return thread;
}

static __always_inline void emit_process(struct task_struct *task, __u32 what, __u32 other,
					 const struct memtoll_target *ended)
{
	struct memtoll_process event = {
		.kind = EVENT_PROCESS,
		.tgid = task->tgid,
		.tid = task->pid,
		.what = what,
		.other = other,
		.exit_code = task->exit_code,
		.time_ns = bpf_ktime_get_ns(),
	};

	if (ended) {
		event.minor_faults = ended->exited_minor_faults;
		event.major_faults = ended->exited_major_faults;
	}
	bpf_probe_read_kernel(event.comm, sizeof(event.comm), task->comm);
	emit(&event, sizeof(event), LOST_RING_PROCESS, 1, true);
}

/* Emit what a thread has open. */
static __always_inline void thread_flush(struct task_struct *task, struct thread *thread)
{
	if (!thread)
		return;
	fault_settle(task, thread);
	run_emit(thread);
	sweep_end(thread);
	reads_emit(thread);
	passes_tell(task, thread);
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

/* As process_rows.c has it. */
static __always_inline void count_near(__u32 tgid, int more)
{
	__sync_fetch_and_add(&near_processes[tgid & (NEAR_PROCESSES - 1)], more);
}

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct *parent, struct task_struct *child)
{
	struct memtoll_target *process, copy;
	__u32 tgid = child->tgid;

	if (child->tgid == parent->tgid)
		return 0;
	/*
	 * Where its number was a traced process's, that has ended, and this is another. An ended one
	 * keeps its row until then, as its last thread still has memory to give back.
	 */
	if (process_get(tgid) && !bpf_map_delete_elem(&processes, &tgid))
		count_near(tgid, -1);
	process = process_get(parent->tgid);
	if (!process || process->exec_pending)
		return 0;
	copy = *process;
	copy.exited_minor_faults = 0;
	copy.exited_major_faults = 0;
	count_near(tgid, 1);
	if (bpf_map_update_elem(&processes, &tgid, &copy, BPF_NOEXIST)) {
		count_near(tgid, -1);
		lose(LOST_PROCESSES_FULL, 1);
		return 0;
	}
	emit_process(parent, PROCESS_FORK, tgid, NULL);
	return 0;
}

static __always_inline void on_exec(struct task_struct *task, struct memtoll_target *process,
				    struct thread *thread, __u32 old_pid)
{
	if (thread) {
		thread->fault.root = 0;
		thread->in_fn = FN_NONE;
	}
	thread_flush(task, thread);
	process->exec_pending = 0;
	process->memset_count = 0;
	process->calloc[0] = 0;
	process->unwind_table = 0;
	process->python.kind = PYTHON_NONE;
	__sync_fetch_and_add(&area_generation, 1);
	emit_process(task, PROCESS_EXEC, old_pid, NULL);
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
	struct memtoll_target *process = process_get(task->tgid);
	struct thread *thread;

	if (process) {
		thread = thread_find(task);
		thread_flush(task, thread);
		if (thread && thread->in_fn)
			lose(LOST_RETURN_MISSED, 1);
		__sync_fetch_and_add(&process->exited_minor_faults, task->min_flt);
		__sync_fetch_and_add(&process->exited_major_faults, task->maj_flt);
		if (task->signal->live.counter == 0) {
			process->ended = 1;
			emit_process(task, PROCESS_EXIT, 0, process);
		}
	}
	give_place_back(task);
	return 0;
}

/*
 * The last drain: after the probes are off, every thread's open run is emitted here, when
 * userspace reads the iterator.
 */
SEC("?iter/task")
int drain_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (task)
		thread_flush(task, thread_find(task));
	return 0;
}
