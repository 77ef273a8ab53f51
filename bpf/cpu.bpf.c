// SPDX-License-Identifier: GPL-2.0
/*
 * cpu.bpf.c: CPU samples. Each is sent whole, with the kernel stack: in a virtual machine without
 * NMIs samples pile up where interrupts are enabled again, so a sample is judged in userspace by
 * all that its stack holds.
 */
#include "memtoll.bpf.h"

static __always_inline __u64 sample_stack(struct task_struct *task, struct thread *thread,
					  const struct pt_regs *regs, bool user)
{
	struct memtoll_stack *stack = &thread->sample_stack;
	struct memtoll_target *process = process_get(task->tgid);
	__u64 bp = regs->bp, sp = regs->sp, caller = 0;

	stack->tgid = task->tgid;
	stack->how = UNWIND_FP;
	stack->flags = 0;
	stack->frames[0] = regs->ip;
	stack->depth = 1;
	if (thread->in_fn) {
		stack->frames[1] = thread->call.ip;
		stack->frames[2] = thread->call.caller;
		stack->depth = 3;
		stack->flags = STACK_SECOND_EXACT;
		bp = thread->call.bp;
		sp = thread->call.sp;
	} else if (user && in_memset(process, regs->ip) &&
		   !bpf_probe_read_user(&caller, sizeof(caller), (void *)sp)) {
		stack->frames[1] = caller;
		stack->depth = 2;
	}
	stack_walk(stack, bp, sp);
	return stack_store(stack);
}

SEC("?perf_event")
int cpu_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = bpf_task_storage_get(&threads, task, NULL, 0);
	struct memtoll_target *process;
	struct memtoll_sample *sample;
	/* User addresses have the top bit clear, on every architecture with 64 bits. */
	bool user = !(PT_REGS_IP(&ctx->regs) >> 63);
	long size;

	if (!thread || stopped || !task->mm)
		return 0;
	sample = bpf_ringbuf_reserve(&events, sizeof(*sample), 0);
	if (!sample) {
		lose(LOST_RING_SAMPLE, 1);
		return 0;
	}
	sample->kind = EVENT_SAMPLE;
	sample->tgid = task->tgid;
	sample->tid = task->pid;
	sample->in_fn = thread->in_fn;
	sample->map_fn = thread->map.map_fn;
	sample->flags = user ? SAMPLE_USER : 0;
	sample->kernel_frames = 0;
	sample->time_ns = bpf_ktime_get_ns();
	if (user) {
		struct pt_regs regs = {};

		regs.ip = ctx->regs.ip;
		regs.sp = ctx->regs.sp;
		regs.bp = ctx->regs.bp;
		sample->ip = regs.ip;
		sample->stack_id = sample_stack(task, thread, &regs, true);
	} else {
		struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

		sample->ip = regs->ip;
		sample->stack_id = sample_stack(task, thread, regs, false);
		size = bpf_get_stack(ctx, sample->kernel, sizeof(sample->kernel), 0);
		if (size > 0)
			sample->kernel_frames = size / sizeof(__u64);
	}
	process = process_get(sample->tgid);
	if (user && in_memset(process, sample->ip))
		sample->flags |= SAMPLE_MEMSET;
	bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
	return 0;
}
