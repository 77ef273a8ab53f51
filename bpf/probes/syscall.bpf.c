// SPDX-License-Identifier: GPL-2.0
/*
 * syscall.bpf.c: where system calls begin and end. One pair of programs runs for every system call
 * of the machine, looks its number up in a table that userspace fills, and hands those that are
 * watched on.
 *
 * Not the tracepoints of single calls (syscalls/sys_enter_mmap and so on): each of their 32 events
 * waits for the whole machine when it is closed (tracepoint_synchronize_unregister() under one
 * lock, kernel/trace/trace_event_perf.c), a second and more in sum, and each needs tracefs. Calls
 * that are not watched pay the way to the tracepoint with both, and here 15 ns more a side.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "wire/syscalls.h"
#include "state/rates.bpf.h"
#include "state/threads.bpf.h"
#include "state/windows.bpf.h"
#include "probes/read.bpf.h"
#include "probes/syscall.bpf.h"

/* Who takes a call, by its number: enum syscall_taker. Userspace fills and changes it. */
__u8 syscall_takers[SYSCALL_NUMBERS];
/* Whether calls that nobody takes are counted, in windows. */
__u32 syscalls_counted;

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, SYSCALL_TAKERS);
	__type(key, __u32);
	__type(value, __u32);
} syscall_entries SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, SYSCALL_TAKERS);
	__type(key, __u32);
	__type(value, __u32);
} syscall_exits SEC(".maps");

static __always_inline __u32 taker_of(__u64 nr)
{
	return nr < SYSCALL_NUMBERS ? syscall_takers[nr] : SYSCALL_NOBODY;
}

/*
 * In windows: system calls that no program of ours looks at, and that are slower all the same.
 * Those of return probes are in the price of these.
 */
static __always_inline void count(__u64 nr)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_get(task);

	if (!thread || map_fn_of(nr) || read_fn_of(nr) || nr == NR_URETPROBE ||
	    !timed_window_is_open())
		return;
	if (++thread->syscalls >= PASSES_AT_ONCE)
		passes_flush(task, thread);
}

SEC("?tp_btf/sys_enter")
int syscall_begin(__u64 *ctx)
{
	__u64 nr = ctx[1];
	__u32 taker = taker_of(nr);
	struct task_struct *task;

	if (taker == SYSCALL_NOBODY) {
		if (syscalls_counted)
			count(nr);
		return 0;
	}
	task = bpf_get_current_task_btf();
	/* Others are spared the way to the taker. */
	if (!may_be_traced(task->tgid) || is_compat(task))
		return 0;
	bpf_tail_call(ctx, &syscall_entries, taker);
	return 0;
}

SEC("?tp_btf/sys_exit")
int syscall_end(__u64 *ctx)
{
	const struct pt_regs *regs = (const struct pt_regs *)ctx[0];
	__u32 taker = taker_of((__u32)syscall_nr(regs));

	/* An entry that nobody took left nothing to be ended: no need to ask whether it is compat. */
	if (taker != SYSCALL_NOBODY && may_be_traced(bpf_get_current_task_btf()->tgid))
		bpf_tail_call(ctx, &syscall_exits, taker);
	return 0;
}
