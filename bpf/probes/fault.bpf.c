// SPDX-License-Identifier: GPL-2.0
/*
 * fault.bpf.c: page faults of the target: class, time, runs.
 *
 * A fault is known at its start (the exceptions tracepoints) and judged by the page-table entry
 * found there. Its end is seen for major faults always, for minor ones in sampling windows (the
 * perf software events). A fault whose end was not seen is settled, as minor and untimed, at the
 * thread's next event.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "wire/config.h"
#include "wire/faults.h"
#include "wire/pages.h"
#include "wire/records.h"
#include "state/emit.bpf.h"
#include "state/fault_rest.bpf.h"
#include "state/losses.bpf.h"
#include "state/numbers.bpf.h"
#include "state/rates.bpf.h"
#include "state/settings.bpf.h"
#include "state/threads.bpf.h"
#include "state/windows.bpf.h"
#include "memory/area.bpf.h"
#include "memory/page_state.bpf.h"
#include "memory/pagetable.bpf.h"
#include "stacks/memo.bpf.h"
#include "probes/context.bpf.h"
#include "probes/fault.bpf.h"
#include "probes/fault_class.bpf.h"
#include "probes/fault_clock.bpf.h"
#include "probes/fault_sequence.bpf.h"
#include "probes/fault_streams.bpf.h"
#include "probes/fault_thinning.bpf.h"
#include "probes/mapping.bpf.h"
#include "probes/page_cache.bpf.h"

#define SERIES_MOST 0xffffffffULL /* nanoseconds, or pages: it has 32 bits for them */

/* Page-fault error code, Intel SDM vol. 3, 4.7. */
#define ERROR_WRITE 0x2ULL
#define ERROR_USER 0x4ULL

static __always_inline void series_emit(struct memtoll_series *series)
{
	/* The count is bounded where it grows, which the verifier cannot know. */
	__u64 size = __builtin_offsetof(struct memtoll_series, runs) +
		     (((series->count - 1) & (SERIES_RUNS - 1)) + 1) * sizeof(series->runs[0]);

	if (!series->count)
		return;
	emit(series, size, LOST_RING_FAULTS, series->pages, false);
	series->count = 0;
}

/* Whether a series holds all that there is to the run. */
static __always_inline bool run_is_plain(const struct memtoll_run *run)
{
	return run->pages == run->faults && !run->timed_faults && !run->in_fn && !run->passed &&
	       !(run->flags & RUN_MAJOR) && run->fault_class != FAULT_SWAP &&
	       run->last_ns - run->first_ns <= SERIES_MOST && run->pages <= SERIES_MOST;
}

static __always_inline bool series_continues(const struct memtoll_series *series,
					     const struct memtoll_run *run)
{
	return series->count && series->count < SERIES_RUNS &&
	       run->address - series->address == series->pages * MEMTOLL_PAGE_SIZE &&
	       run->fault_class == series->fault_class && run->area == series->area &&
	       run->inode == series->inode && run->dev == series->dev &&
	       run->last_ns - series->first_ns <= SERIES_MOST;
}

static __always_inline void series_begin(struct memtoll_series *series,
					 const struct memtoll_run *run)
{
	series->kind = EVENT_SERIES;
	series->tgid = run->tgid;
	series->tid = run->tid;
	series->fault_class = run->fault_class;
	series->area = run->area;
	series->address = run->address;
	series->pages = 0;
	series->first_ns = run->first_ns;
	series->inode = run->inode;
	series->file_page = run->file_page;
	series->dev = run->dev;
}

static __always_inline void series_add(struct memtoll_series *series, const struct memtoll_run *run)
{
	struct memtoll_plain_run *plain;
	__u32 at;

	if (!series_continues(series, run)) {
		series_emit(series);
		series_begin(series, run);
	}
	at = series->count;
	barrier_var(at);
	plain = &series->runs[at & (SERIES_RUNS - 1)];
	plain->ip = run->ip;
	plain->stack_id = run->stack_id;
	plain->first_after_ns = run->first_ns - series->first_ns;
	plain->last_after_ns = run->last_ns - series->first_ns;
	plain->pages = run->pages;
	plain->flags = run->flags;
	series->pages += run->pages;
	series->count = at + 1;
}

/* The open run is over: it joins the series, which is sent when full, or goes by itself. */
int run_close(struct thread *thread)
{
	struct memtoll_run *run;

	if (!thread)
		return 0;
	run = &thread->run;
	if (!run->faults)
		return 0;
	/* Pages that it used came in before. */
	if (thread->fill.pages)
		fills_emit(thread);
	if (run_is_plain(run)) {
		series_add(&thread->series, run);
	} else {
		series_emit(&thread->series);
		emit(run, sizeof(*run), LOST_RING_FAULTS, run->faults + run->passed, false);
	}
	run->faults = 0;
	return 0;
}

int run_emit(struct thread *thread)
{
	if (!thread)
		return 0;
	run_close(thread);
	series_emit(&thread->series);
	return 0;
}

static __always_inline bool run_continues(const struct thread *thread, __u64 address, __u64 ip,
					  __u8 fault_class, __u8 in_fn)
{
	const struct memtoll_run *run = &thread->run;

	return run->faults && run->ip == ip && run->in_fn == in_fn &&
	       merge_class(run->fault_class) == merge_class(fault_class) &&
	       address - run->address == run->pages * MEMTOLL_PAGE_SIZE;
}

static __always_inline void run_add_time(struct memtoll_run *run, __u64 cpu_ns, __u64 blocked_ns)
{
	__u64 us = cpu_ns / 1000;

	run->timed_faults++;
	run->timed_cpu_ns += cpu_ns;
	run->timed_cpu_us2 += us * us;
	run->blocked_ns += blocked_ns;
}

/* Add the open fault to the thread's run, or emit that and begin another with it. */
static __always_inline void run_add(struct thread *thread, bool major, bool timed, __u64 cpu_ns,
				    __u64 blocked_ns)
{
	struct open_fault *fault = &thread->fault;
	struct memtoll_run *run = &thread->run;
	__u64 pages = 1;

	fault->active = 0;
	order_end(thread);
	if (fault->look_again)
		pages = fault_result(fault, thread->area.start, thread->area.end);
	/* It went to swap between its begin and its look-up: else shared memory waits for nothing. */
	if (major &&
	    (fault->fault_class == FAULT_SHARED || fault->fault_class == FAULT_SHARED_ZERO))
		fault->fault_class = FAULT_SWAP;
	if (fault->fault_class == FAULT_SWAP && major)
		fault->fault_class = swap_source(fault);
	if (!run_continues(thread, fault->address, fault->ip, fault->fault_class, fault->in_fn) ||
	    run->fault_class != fault->fault_class || run->swap_type != fault->swap_type ||
	    (run->flags & RUN_MAJOR) != (major ? RUN_MAJOR : 0)) {
		run_close(thread);
		run->kind = EVENT_RUN;
		run->tgid = fault->tgid;
		run->tid = fault->tid;
		run->fault_class = fault->fault_class;
		run->area = fault->area;
		run->in_fn = fault->in_fn;
		run->flags = fault->flags | (major ? RUN_MAJOR : 0) |
			     thread->area.zero_file * RUN_ZERO_FILE;
		run->address = fault->address;
		run->pages = 0;
		run->faults = 0;
		run->passed = 0;
		run->first_ns = fault->start.ns;
		run->timed_faults = 0;
		run->timed_cpu_ns = 0;
		run->timed_cpu_us2 = 0;
		run->blocked_ns = 0;
		run->ip = fault->ip;
		run->stack_id = fault->stack_id;
		run->inode = fault->inode;
		run->file_page = fault->address / MEMTOLL_PAGE_SIZE + thread->area.offset;
		run->dev = fault->dev;
		run->swap_type = fault->swap_type;
	}
	run->pages += pages;
	thread->sweep.next = run->address + run->pages * MEMTOLL_PAGE_SIZE;
	thread->sweep.faults++;
	run->faults++;
	run->passed += fault->passed;
	run->last_ns = fault->start.ns;
	if (timed)
		run_add_time(run, cpu_ns, blocked_ns);
}

/* It took until the handler's answer, and what others took from there to their end. */
static __always_inline void run_add_answered(struct thread *thread)
{
	const struct open_fault *fault = &thread->fault;
	__u64 wait_ns = fault->answered_ns - fault->start.ns;

	run_add_time(&thread->run, fault->answered_cpu_ns,
		     wait_ns - fault->answered_cpu_ns + thread->answer_tail_ns);
}

/*
 * A fault whose end was not seen is minor (majors are always seen) and over by now, and so are
 * those that have followed it in order.
 */
int fault_settle_open(struct thread *thread)
{
	struct memtoll_rates *rates;
	__u64 followed;

	if (!thread)
		return 0;
	followed = thread->order.followed;
	run_add(thread, false, false, 0, 0);
	if (thread->fault.answered_ns && !thread->fault.interrupted)
		run_add_answered(thread);
	if (!followed)
		return 0;
	thread->run.pages += followed;
	thread->run.faults += followed;
	thread->run.passed += rest_spoken_for(thread->run.tgid, followed);
	thread->sweep.next += followed * MEMTOLL_PAGE_SIZE;
	thread->sweep.faults += followed;
	rates = rates_here();
	if (rates) {
		rates->faults += followed;
		rates->ordered_faults += followed;
	}
	return 0;
}

/* The last that has followed in order is the open fault after all: its end is seen. */
static __always_inline void order_unfold(struct thread *thread)
{
	struct open_fault *fault = &thread->fault;
	__u64 address = fault->address + thread->order.followed * MEMTOLL_PAGE_SIZE;
	struct memtoll_rates *rates;

	if (!thread->order.followed)
		return;
	thread->order.followed--;
	fault_settle(thread);
	rates = rates_here();
	if (rates)
		rates->faults++;
	fault->address = address;
	fault->passed = 0;
	fault->stamped = 0;
	fault->active = 1;
}

static __always_inline __u32 kind_of(__u8 fault_class)
{
	switch (merge_class(fault_class)) {
	case FAULT_ZERO:
	case FAULT_ZERO_UPGRADE:
	case FAULT_ZERO_READ:
	case FAULT_SHARED_ZERO:
		return FAULT_KIND_ZERO;
	case FAULT_SWAP:
		return FAULT_KIND_SWAP;
	default:
		return FAULT_KIND_OTHER;
	}
}

/* In the allocator's call that met it; the kinds for its record, should it take long. */
static __always_inline void call_add_fault(struct open_call *call, __u8 fault_class)
{
	struct call_inside *inside = &call->inside;
	__u32 kind = kind_of(fault_class);

	if (!call->faults) {
		__builtin_memset(inside->faults, 0, sizeof(inside->faults));
		__builtin_memset(inside->timed, 0, sizeof(inside->timed));
		__builtin_memset(inside->fault_ns, 0, sizeof(inside->fault_ns));
	}
	call->faults++;
	inside->faults[kind]++;
}

static __always_inline void call_add_timed_fault(struct open_call *call, __u8 fault_class,
						 __u64 wall_ns)
{
	__u32 kind = kind_of(fault_class);

	/* A fault that began before the call is none of its own. */
	if (!call->faults)
		return;
	call->inside.timed[kind]++;
	call->inside.fault_ns[kind] += wall_ns;
}

/* One that does not follow in order. timed: what its stack costs is counted from here on. */
static __always_inline void fault_count(struct thread *thread, __u32 tgid, bool timed)
{
	struct open_fault *fault = &thread->fault;
	struct memtoll_rates *rates = rates_here();

	if (!rates)
		return;
	rates->faults++;
	fault->passed = faults_passed(thread, tgid, rates);
	if (timed)
		fault->timed_walk_ns = rates->walk_ns;
}

/*
 * Whether the timestamp of the last fault can be reused: the end of this one, which is minor, is
 * not observed, and it has the same owner, as no mapping (or the area would have been looked up
 * again) and no block has changed since.
 */
static __always_inline bool can_reuse_timestamp(const struct thread *thread)
{
	const struct open_fault *fault = &thread->fault;

	return thread->sweep.faults % STAMP_FAULTS && fault->fault_class == FAULT_ZERO &&
	       !fault->in_fn && !ends_are_seen() && fault->block_generation == block_generation;
}

/*
 * What kind of access it was, from the context each time: to the verifier one value, whose branches
 * it follows together, would be as many programs as there are kinds.
 */
static __always_inline bool is_error(const struct bpf_raw_tracepoint_args *ctx, __u64 bit)
{
	return CONTEXT_WORD(ctx, 2 * sizeof(__u64)) & bit;
}

/*
 * What the running process has at an address goes to thread->area. Whether an interrupt comes of it,
 * which is taken as soon as the fault lets interrupts in.
 */
__noinline int area_renew(struct thread *thread, __u64 address)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	if (!thread || !current_mm())
		return 0;
	return area_ask(task, thread, address, regs->sp);
}

/* What the fault does, by its area and its page-table entry. */
static __always_inline void fault_judge(const struct bpf_raw_tracepoint_args *ctx,
					struct task_struct *task, struct thread *thread)
{
	struct open_fault *fault = &thread->fault;
	__u64 address = ctx->args[0];
	int end;

	if (!area_is_known(task, thread, address)) {
		fault->began_ns = bpf_ktime_get_ns();
		fault->interrupted = area_renew(thread, address);
	}
	/* Kept: another thread may have to look again, the one that drains. */
	fault->root = table_root();
	end = walk_tables(&fault->walked, fault->root, address);
	fault->fault_class = fault_classify(end, fault, &thread->area, is_error(ctx, ERROR_WRITE));
	fault->swap_type =
		fault->fault_class == FAULT_SWAP ? fault->walked.entry >> SWAP_TYPE_SHIFT : 0;
	fault->pfn = 0;
	look_around(fault, end, thread->area.start);
	if (fault->fault_class == FAULT_USER && !handler_suspected)
		handler_suspected = 1;
	if (fault->fault_class == FAULT_SWAP || fault->fault_class == FAULT_USER)
		fault_be_careful(thread);
	fault->area = thread->area.area;
	fault->inode = thread->area.inode;
	fault->dev = thread->area.dev;
}

/* A stack that is not known from the faults before. */
static __always_inline void fault_walk_stack(const struct bpf_raw_tracepoint_args *ctx,
					     struct task_struct *task, struct thread *thread,
					     const struct pt_regs *regs, __u8 flags)
{
	struct open_fault *fault = &thread->fault;
	const struct memtoll_target *process;
	bool memset_code, leaf;

	if (!fault->began_ns)
		fault->began_ns = bpf_ktime_get_ns();
	process = process_get(task->tgid);
	memset_code = is_error(ctx, ERROR_USER) && in_memset(process, fault->ip);
	fault->flags = flags | (memset_code ? RUN_MEMSET : 0) |
		       (memset_code && !(regs->si & 0xff) ? RUN_FILL_ZERO : 0);
	leaf = memset_code || (!is_error(ctx, ERROR_USER) && is_return_address(regs->sp));
	thread->python.woken = 0;
	fault->stack_id = memo_stack(thread, regs, leaf);
	fault->interrupted |= thread->python.woken;
	sweep_remember(thread, regs->ip, regs->sp);
}

/* Where the fault comes from: its stack, and what else only the instruction tells. */
static __always_inline void fault_locate(const struct bpf_raw_tracepoint_args *ctx,
					 struct task_struct *task, struct thread *thread,
					 const struct pt_regs *regs)
{
	struct open_fault *fault = &thread->fault;
	struct sweep_place *place;
	__u8 flags = (is_error(ctx, ERROR_USER) ? 0 : RUN_KERNEL_MODE) |
		     (is_error(ctx, ERROR_WRITE) ? RUN_WRITE : 0);

	if (run_continues(thread, fault->address, fault->ip, fault->fault_class, fault->in_fn)) {
		fault->stack_id = thread->run.stack_id;
		fault->flags = thread->run.flags & ~(RUN_MAJOR | RUN_INTERRUPTED);
	} else if ((place = sweep_find(thread, regs, flags))) {
		fault->stack_id = place->stack_id;
		fault->flags = place->flags;
	} else {
		fault_walk_stack(ctx, task, thread, regs, flags);
	}
}

/* In the calls that the thread is in. */
static __always_inline void fault_count_inside(struct thread *thread)
{
	struct memtoll_rates *rates;

	if (thread->in_fn) {
		call_add_fault(&thread->call, thread->fault.fault_class);
		rates = rates_here();
		if (rates)
			rates->inside_faults++;
	}
	if (in_map(thread))
		thread->map.minor++;
	if (in_read(thread))
		thread->read.faults++;
}

/* The fault's time begins after ours; what a new run has cost us is not the caller's. */
static __always_inline void fault_stamp(struct task_struct *task, struct thread *thread)
{
	struct open_fault *fault = &thread->fault;

	fault->stamped = fault->began_ns || !can_reuse_timestamp(thread);
	if (fault->stamped) {
		fault->block_generation = block_generation;
		stamp_take(task, &fault->start);
	}
	if (fault->began_ns && thread->in_fn)
		thread->call.probe_ns += fault->start.ns - fault->began_ns;
}

/*
 * One program at both tracepoints, user's and kernel's (attach.c): it is the longest, and is then
 * verified once. What a fault in user mode interrupted is what its thread entered the kernel with.
 */
SEC("?raw_tp")
int fault_begin(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 address = ctx->args[0], timed_ns;
	struct thread *thread, *met;
	struct open_fault *fault;
	struct pt_regs *regs;

	if (!may_be_traced(task->tgid))
		return 0;
	timed_ns = fault_is_timed(task) ? bpf_ktime_get_ns() : 0;
	met = thread_of(task);
	thread = thread_check(task, met);
	if (!thread || !current_mm())
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	fault = &thread->fault;
	/* A helper that reads user memory without sleeping: no page will be mapped. */
	if (!is_error(ctx, ERROR_USER) && (task->pagefault_disabled || address >> 56))
		return 0;
	rest_catch_up(task, thread);
	/* To make the thread's state is counted apart. */
	fault->timed_ns = met ? timed_ns : 0;
	fault->began_ns = 0;
	if (is_error(ctx, ERROR_USER) && is_error(ctx, ERROR_WRITE) &&
	    order_follows(thread, address, regs->ip)) {
		if (fault->timed_ns)
			fault_account_least(fault->timed_ns);
		return 0;
	}
	if (is_error(ctx, ERROR_USER))
		thread->unbegun = 0;
	if (fault_is_passed(thread)) {
		fault_settle(thread);
		if (fault->timed_ns)
			fault_account_least(fault->timed_ns);
		return 0;
	}
	/* Before what it stands for replaces what the one before did. */
	fault_settle(thread);
	fault_count(thread, task->tgid, fault->timed_ns);
	if (thread->drained != drain_epoch) {
		thread->drained = drain_epoch;
		run_emit(thread);
		sweep_end(thread);
		maps_settle(thread, task->tgid);
	}
	fault->reclaim_cpu_ns = 0;
	fault->reclaim_blocked_ns = 0;
	fault->in_device = 0;
	fault->in_zswap = 0;
	fault->in_zero = 0;
	fault->answered_ns = 0;
	fault->interrupted = 0;
	fault->tgid = task->tgid;
	fault->tid = task->pid;
	fault->address = address & ~(MEMTOLL_PAGE_SIZE - 1);
	fault->ip = regs->ip;
	fault->in_fn = thread->in_fn;
	fault_judge(ctx, task, thread);
	fault_count_inside(thread);
	fault_locate(ctx, task, thread, regs);
	fault_stamp(task, thread);
	fault->active = 1;
	if (fault->fault_class == FAULT_ZERO && !fault->look_again && !fault->in_fn &&
	    is_error(ctx, ERROR_USER))
		order_begin(thread);
	/* Its own time begins where the program's ends. */
	if (fault->timed_ns)
		fault_account(fault, fault->timed_ns,
			      fault->stamped ? fault->start.ns : bpf_ktime_get_ns());
	return 0;
}

int area_learn(struct thread *thread, __u64 address)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	if (thread && current_mm() && !area_is_known(task, thread, address))
		area_ask(task, thread, address, regs->sp);
	return 0;
}

/* It was counted as a minor one where it began. */
static __always_inline void major_inside(struct thread *thread)
{
	if (in_map(thread)) {
		thread->map.minor--;
		thread->map.major++;
	}
	if (in_read(thread))
		thread->read.faults--;
}

#define ANSWER_TAIL_SHIFT 3

static __always_inline void answer_tail(struct thread *thread, __u64 now)
{
	__u64 tail_ns = now - thread->fault.answered_ns, mean_ns = thread->answer_tail_ns;

	thread->answer_tail_ns = mean_ns ? mean_ns - (mean_ns >> ANSWER_TAIL_SHIFT) +
						   (tail_ns >> ANSWER_TAIL_SHIFT) :
					   tail_ns;
}

/* The end of a fault that rested. What is open is another one, which is over. */
static __always_inline int rest_end(struct thread *thread, bool major)
{
	if (!major)
		return 0;
	fault_settle(thread);
	fault_passed_major(thread, true);
	return 0;
}

static __always_inline int fault_end(bool major)
{
	struct task_struct *task = bpf_get_current_task_btf();
	/* A major one that rested is told as lost, whoever had it. */
	struct thread *thread =
		major && faults_rest == FAULTS_REST ? thread_get(task) : thread_find(task);
	__u64 now, wall_ns, cpu_ns, blocked_ns;

	if (!thread || !is_counted(thread))
		return 0;
	if (!rest_saw_begin(task, thread, major))
		return rest_end(thread, major);
	if (major) {
		fault_be_careful(thread);
		thread->order.minor_seen = task->min_flt;
	}
	if (!thread->fault.active) {
		if (major)
			fault_passed_major(thread, false);
		return 0;
	}
	order_unfold(thread);
	if (major)
		fault_gives_back(&thread->fault);
	/* What comes while it is under way is most of a minor one's time. */
	if (thread->fault.stamped && thread->fault.interrupted && !major) {
		thread->fault.flags |= RUN_INTERRUPTED;
		thread->fault.stamped = 0;
	}
	/* The window has opened since, or the fault was tried again, which makes it a major one. */
	if (!thread->fault.stamped) {
		if (major)
			major_inside(thread);
		run_add(thread, major, false, 0, 0);
		return 0;
	}
	now = bpf_ktime_get_ns();
	windows_end(now);
	wall_ns = now - thread->fault.start.ns;
	cpu_ns = stamp_cpu_ns(task, &thread->fault.start, now);
	/* Without a voluntary switch another task had the CPU for the rest of the time. */
	blocked_ns = task->nvcsw != thread->fault.start.voluntary ? wall_ns - cpu_ns : 0;
	cpu_ns = sub_sat(cpu_ns, thread->fault.reclaim_cpu_ns);
	blocked_ns = sub_sat(blocked_ns, thread->fault.reclaim_blocked_ns);
	if (thread->fault.answered_ns)
		answer_tail(thread, now);
	if (thread->in_fn) {
		thread->call.faults_timed++;
		thread->call.fault_cpu_ns += cpu_ns;
		call_add_timed_fault(&thread->call, thread->fault.fault_class, wall_ns);
	}
	if (major)
		major_inside(thread);
	if (major && in_read(thread)) {
		thread->read.fault_cpu_ns += cpu_ns;
		thread->read.fault_blocked_ns += blocked_ns;
		thread->read.fault_switches += task->nvcsw - thread->fault.start.voluntary;
	}
	run_add(thread, major, true, cpu_ns, blocked_ns);
	return 0;
}

SEC("?perf_event")
int fault_end_minor(void *ctx)
{
	return ends_are_seen() ? fault_end(false) : 0;
}

SEC("?perf_event")
int fault_end_major(void *ctx)
{
	return fault_end(true);
}
