// SPDX-License-Identifier: GPL-2.0
/*
 * lock.bpf.c: futex calls inside the allocator: a thread waits for an arena that another one holds.
 *
 * Watched only once some process has a second thread: those with one pay nothing.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "state/settings.bpf.h"
#include "state/threads.bpf.h"
#include "state/windows.bpf.h"

/* include/uapi/linux/futex.h */
#define FUTEX_WAIT_OP 0
#define FUTEX_WAIT_BITSET_OP 9
#define FUTEX_OP_MASK 0x7f

SEC("?tp_btf/sys_enter")
int lock_enter(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_find(task);
	struct pt_regs *regs;
	__u32 op;

	if (!thread || !thread->in_fn || stopped)
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	op = PT_REGS_PARM2_SYSCALL(regs) & FUTEX_OP_MASK;
	if (op == FUTEX_WAIT_OP || op == FUTEX_WAIT_BITSET_OP)
		thread->futex_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("?tp_btf/sys_exit")
int lock_exit(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread = thread_find(task);

	if (!thread || !thread->futex_ns)
		return 0;
	/*
	 * A call that was left since (a signal's longjmp) is not the one that waited, nor need one
	 * be whose end was in no window.
	 */
	if (thread->in_fn && thread->futex_ns >= thread->call.start.ns &&
	    thread->futex_ns >= calls_watched_ns) {
		thread->call.lock_waits++;
		thread->call.lock_ns += bpf_ktime_get_ns() - thread->futex_ns;
	}
	thread->futex_ns = 0;
	return 0;
}
