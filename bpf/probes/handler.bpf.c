// SPDX-License-Identifier: GPL-2.0
/*
 * handler.bpf.c: who answers faults that wait for a userfaultfd's handler, where, and after how
 * long.
 *
 * The handler's ioctl wakes the thread that waits, whichever process it is of. Attached only once
 * there was such a fault: it runs for every wake-up of the machine.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "wire/faults.h"
#include "wire/records.h"
#include "wire/sums.h"
#include "state/buckets.bpf.h"
#include "state/losses.bpf.h"
#include "state/numbers.bpf.h"
#include "state/row.bpf.h"
#include "state/settings.bpf.h"
#include "state/threads.bpf.h"
#include "stacks/memo.bpf.h"
#include "probes/syscall.bpf.h"

/* include/uapi/linux/userfaultfd.h, include/uapi/asm-generic/ioctl.h */
#define USERFAULTFD_TYPE 0xaa
#define IOCTL_TYPE(request) ((request) >> 8 & 0xff)
#define IOCTL_NUMBER(request) ((request)&0xff)

SUM_TABLE(answers, 1024, 64, struct memtoll_answer_key, struct memtoll_answer);

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32); /* the thread's number */
	__type(value, struct memtoll_handler);
} handlers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct memtoll_longest_wait);
} longest_waits SEC(".maps");

static __always_inline void name_handler(struct task_struct *task)
{
	struct memtoll_handler handler = {};
	__u32 tid = task->pid;

	handler.tgid = task->tgid;
	bpf_probe_read_kernel(handler.comm, sizeof(handler.comm), task->comm);
	BPF_CORE_READ_INTO(&handler.process, task, group_leader, comm);
	bpf_map_update_elem(&handlers, &tid, &handler, BPF_ANY);
}

static __always_inline void keep_longest(struct task_struct *task, struct task_struct *waiter,
					 const struct open_fault *fault, __u64 wait_ns)
{
	__u32 tgid = waiter->tgid;
	const struct memtoll_longest_wait *longest = bpf_map_lookup_elem(&longest_waits, &tgid);
	struct memtoll_longest_wait wait = {};

	if (longest && longest->wait_ns >= wait_ns)
		return;
	wait.wait_ns = wait_ns;
	wait.start_ns = fault->start.ns;
	wait.address = fault->address;
	wait.stack_id = fault->stack_id;
	wait.tid = waiter->pid;
	wait.handler_tid = task->pid;
	bpf_map_update_elem(&longest_waits, &tgid, &wait, BPF_ANY);
}

static __always_inline void answer_add(struct task_struct *task, struct task_struct *waiter,
				       const struct pt_regs *regs, __u64 wait_ns)
{
	static const struct memtoll_answer zero;
	__u32 request = IOCTL_NUMBER(PT_REGS_PARM2_SYSCALL(regs)), bucket = latency_bucket(wait_ns);
	struct memtoll_answer_key key = { .tgid = waiter->tgid, .tid = task->pid };
	struct thread *thread = thread_get(task);
	struct memtoll_answer *answer;

	if (thread)
		key.stack_id = memo_stack(thread, regs, true);
	answer = row_find(&answers, &answers_shared, &key, &zero);
	if (!answer) {
		name_handler(task);
		answer = row_make(&answers, &answers_shared, &key, &zero);
	}
	if (!answer) {
		lose(LOST_ANSWERS_FULL, 1);
		return;
	}
	__sync_fetch_and_add(&answer->sum.waits, 1);
	__sync_fetch_and_add(&answer->sum.wait_ns, wait_ns);
	if (request < ANSWER_REQUESTS)
		__sync_fetch_and_add(&answer->sum.requests[request], 1);
	if (bucket < LATENCY_BUCKETS)
		__sync_fetch_and_add(&answer->latency[bucket], 1);
}

/* Whether the thread sleeps in a fault, not in a system call that came after it. */
static __always_inline bool waits_for_handler(struct task_struct *waiter,
					      const struct open_fault *fault)
{
	bool in_call;

	if (!fault->active || fault->fault_class != FAULT_USER || fault->answered_ns)
		return false;
	in_call = syscall_nr((struct pt_regs *)bpf_task_pt_regs(waiter)) >= 0;
	return in_call == !!(fault->flags & RUN_KERNEL_MODE);
}

SEC("?tp_btf/sched_waking")
int BPF_PROG(fault_answered, struct task_struct *waiter)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct pt_regs *regs = (const struct pt_regs *)bpf_task_pt_regs(task);
	struct open_fault *fault;
	struct thread *thread;
	__u64 now, wait_ns;

	if (syscall_nr(regs) != NR_IOCTL ||
	    IOCTL_TYPE(PT_REGS_PARM2_SYSCALL(regs)) != USERFAULTFD_TYPE || stopped)
		return 0;
	thread = thread_find(waiter);
	if (!thread || !waits_for_handler(waiter, &thread->fault))
		return 0;
	fault = &thread->fault;
	now = bpf_ktime_get_ns();
	wait_ns = sub_sat(now, fault->start.ns);
	fault->answered_cpu_ns = sub_sat(waiter->se.sum_exec_runtime, fault->start.runtime_ns);
	if (fault->answered_cpu_ns > wait_ns)
		fault->answered_cpu_ns = wait_ns;
	fault->answered_ns = fault->start.ns + wait_ns;
	keep_longest(task, waiter, fault, wait_ns);
	answer_add(task, waiter, regs, wait_ns);
	return 0;
}
