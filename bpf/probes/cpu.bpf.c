// SPDX-License-Identifier: GPL-2.0
/*
 * cpu.bpf.c: CPU samples. Each is sent whole, with the kernel stack: in a virtual machine without
 * NMIs samples pile up where interrupts are enabled again, so a sample is judged in userspace by
 * all that its stack holds.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "wire/pages.h"
#include "wire/records.h"
#include "wire/syscalls.h"
#include "state/emit.bpf.h"
#include "state/losses.bpf.h"
#include "state/numbers.bpf.h"
#include "state/processes.bpf.h"
#include "state/rates.bpf.h"
#include "state/threads.bpf.h"
#include "state/windows.bpf.h"
#include "memory/page_state.bpf.h"
#include "stacks/stack.bpf.h"
#include "probes/file_kind.bpf.h"
#include "probes/stores.bpf.h"
#include "probes/syscall.bpf.h"

#define INSTRUCTION_BYTES 16 /* of the longest one, and more */

/*
 * Whether a program at this instruction is in a probe's code, which the kernel keeps in a page of
 * the process, or goes on after one: interrupts that fall due while the kernel has them off come as
 * soon as it goes on with the program, and are the probe's, not the program's.
 */
static __always_inline bool beside_probe(struct task_struct *task, const struct thread *thread,
					 __u64 ip)
{
	__u64 page;

	if (ip - thread->entry_ip < INSTRUCTION_BYTES || ip == thread->return_ip)
		return true;
	page = BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
	return page && ip - page < MEMTOLL_PAGE_SIZE;
}

#if defined(__TARGET_ARCH_x86)
/*
 * Where the call before a return address goes to, as far as its instruction shows: call rel32,
 * straight or by an entry of the linkage table, and call *disp32(%rip). 0: it does not.
 */
static __always_inline __u64 called_before(__u64 address)
{
	__u64 stub[2], target, slot;
	__u8 code[6];
	__s32 disp;

	if (bpf_probe_read_user(code, sizeof(code), (void *)(address - sizeof(code))))
		return 0;
	__builtin_memcpy(&disp, &code[2], sizeof(disp));
	target = address + disp;
	if (code[0] == 0xff && code[1] == 0x15) {
		slot = target;
	} else if (code[1] == 0xe8) {
		if (bpf_probe_read_user(stub, sizeof(stub), (void *)target))
			return 0;
		/* [endbr64] [bnd] jmp *disp32(%rip); a function begins otherwise. */
		slot = target;
		if ((__u32)stub[0] == 0xfa1e0ff3) {
			stub[0] = stub[0] >> 32 | stub[1] << 32;
			slot += 4;
		}
		if ((stub[0] & 0xff) == 0xf2) {
			stub[0] >>= 8;
			slot += 1;
		}
		if ((stub[0] & 0xffff) != 0x25ff)
			return target;
		slot += 6 + (__s32)(stub[0] >> 16);
	} else {
		return 0;
	}
	return bpf_probe_read_user(&target, sizeof(target), (void *)slot) ? 0 : target;
}
#else
static __always_inline __u64 called_before(__u64 address)
{
	return 0;
}
#endif

/*
 * calloc goes on to memset by a jump (glibc 2.36): what memset returns to is calloc's caller. Where
 * calloc is not watched at the time, only the call instruction there distinguishes the two. sp: in
 * memset, which keeps nothing on the stack.
 */
static __always_inline bool memset_is_callocs(const struct memtoll_target *process, __u64 sp)
{
	__u64 address, called;
	int i;

	if (!process || !process->calloc[0] ||
	    bpf_probe_read_user(&address, sizeof(address), (void *)sp))
		return false;
	called = called_before(address);
	for (i = 0; i < MEMTOLL_CALLOCS; i++)
		if (called && process->calloc[i] == called)
			return true;
	return false;
}

/*
 * glibc's memset keeps its second argument, a byte that was widened either way. In its bzero the
 * register has a length: what is no byte says nothing.
 */
static __always_inline bool is_fill(__u32 second)
{
	return (second & 0xff) && (second <= 0xff || second >= 0xffffff80);
}

/* The code that a sample in user mode is in. What it returns: as sample_stores(). */
static __always_inline int sample_code(struct bpf_perf_event_data *ctx,
				       const struct memtoll_target *process,
				       struct memtoll_sample *sample)
{
	if (in_memset(process, sample->ip)) {
		sample->flags |=
			SAMPLE_MEMSET | (is_fill(PT_REGS_PARM2(&ctx->regs)) ? SAMPLE_FILL : 0);
		if (!sample->in_fn && memset_is_callocs(process, PT_REGS_SP(&ctx->regs)))
			sample->in_fn = FN_CALLOC;
	} else if (in_memcpy(process, sample->ip)) {
		sample->flags |= SAMPLE_MEMCPY;
	}
	return sample->flags & SAMPLE_PROBE ? 0 : sample_stores((struct pt_regs *)ctx, sample);
}

/*
 * The function that has just returned to a place, which follows on call rel32: its return address is
 * below the stack's top still. 0: none has.
 */
static __always_inline __u64 returned_to(__u64 ip, __u64 sp)
{
	__u64 address;
	__s32 disp;

	if (bpf_probe_read_user(&address, sizeof(address), (void *)(sp - sizeof(address))) ||
	    address != ip || bpf_probe_read_user(&disp, sizeof(disp), (void *)(ip - sizeof(disp))))
		return 0;
	return ip + disp;
}

static __always_inline void sample_account(__u64 began_ns, __u64 walk_ns)
{
	struct memtoll_rates *rates = rates_here();

	if (!rates)
		return;
	rates->samples++;
	rates->sample_ns += sub_sat(bpf_ktime_get_ns() - began_ns, rates->walk_ns - walk_ns);
}

/*
 * A read of a file that is not looked at while those that are speak for the others: thinned, or at
 * rest. Its time is that of the toll already.
 */
static __always_inline bool is_spoken_for(struct pt_regs *regs)
{
	__u32 read_fn = read_fn_of(syscall_nr(regs));
	struct file *file;

	if (read_fn == READ_FN_NONE || read_fn == READ_FN_IO_SUBMIT)
		return false;
	if (calls_rest != CALLS_REST) {
		if (fault_draw == ~0U)
			return false;
		if (read_fn == READ_FN_READ ? reads_watched_ns == ~0ULL : !calls_are_watched())
			return false;
	}
	file = (struct file *)current_file(PT_REGS_PARM1_SYSCALL(regs));
	return file && file_kind(BPF_CORE_READ(file, f_inode));
}

/* Of nothing yet: no code, no call, no stack. */
static __always_inline struct memtoll_sample *sample_new(const struct task_struct *task)
{
	struct memtoll_sample *sample = bpf_ringbuf_reserve(&events, sizeof(*sample), 0);

	if (!sample) {
		lose(LOST_RING_SAMPLE, 1);
		return NULL;
	}
	sample->kind = EVENT_SAMPLE;
	sample->tgid = task->tgid;
	sample->tid = task->pid;
	sample->in_fn = FN_NONE;
	sample->map_fn = MAP_FN_NONE;
	sample->flags = 0;
	sample->kernel_frames = 0;
	sample->syscall = -1;
	sample->time_ns = bpf_ktime_get_ns();
	sample->ip = 0;
	sample->stack_id = 0;
	sample->store = 0;
	sample->stores = 0;
	sample->left = 0;
	sample->sp = 0;
	return sample;
}

/*
 * A process that ends has no memory of its own any more, and gives back what it had. Its threads'
 * states are gone; that it was traced is still known.
 */
static __always_inline int sample_ending(struct bpf_perf_event_data *ctx, struct task_struct *task)
{
	struct memtoll_sample *sample;
	long size;

	if (!(task->flags & PF_EXITING) || !process_get(task->tgid))
		return 0;
	sample = sample_new(task);
	if (!sample)
		return 0;
	sample->syscall = NR_EXIT_GROUP;
	size = bpf_get_stack(ctx, sample->kernel, sizeof(sample->kernel), 0);
	if (size > 0)
		sample->kernel_frames = size / sizeof(__u64);
	bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("?perf_event")
int cpu_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *thread;
	struct memtoll_sample *sample;
	__u64 ip, sp, bp, shown, entry;
	/* User addresses have the top bit clear, on every architecture with 64 bits. */
	bool user = !(PT_REGS_IP(&ctx->regs) >> 63), leaf;
	int returned_from = 0;
	long size;

	if (!current_mm())
		return sample_ending(ctx, task);
	thread = thread_get(task);
	if (!thread)
		return 0;
	sample = sample_new(task);
	if (!sample)
		return 0;
	sample->in_fn = thread->in_fn;
	sample->map_fn = in_map(thread) ? thread->map.map_fn : MAP_FN_NONE;
	sample->flags = user ? SAMPLE_USER : in_read(thread) ? SAMPLE_READ : 0;
	windows_end(sample->time_ns);
	thread->sample_walk_ns = walked_ns();
	if (user) {
		ip = PT_REGS_IP(&ctx->regs);
		sp = PT_REGS_SP(&ctx->regs);
		bp = PT_REGS_FP(&ctx->regs);
	} else {
		struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

		sample->syscall = syscall_nr(regs);
		if (!(sample->flags & SAMPLE_READ) && is_spoken_for(regs))
			sample->flags |= SAMPLE_SPOKEN;
		ip = PT_REGS_IP(regs);
		sp = PT_REGS_SP(regs);
		bp = PT_REGS_FP(regs);
		size = bpf_get_stack(ctx, sample->kernel, sizeof(sample->kernel), 0);
		if (size > 0)
			sample->kernel_frames = size / sizeof(__u64);
	}
	if (beside_probe(task, thread, ip))
		sample->flags |= SAMPLE_PROBE;
	sample->ip = ip;
	if (user) {
		sample->sp = sp;
		returned_from = sample_code(ctx, process_get(task->tgid), sample);
	}
	/*
	 * clone3's wrapper has no call frame information behind its system call, where the new
	 * thread begins, too: its caller is known by the word on top of the stack.
	 */
	leaf = (sample->flags & SAMPLE_MEMSET) || (!user && is_return_address(sp));
	/* The function that it waited for is named, where that stores, as if it had just begun. */
	shown = ip;
	entry = returned_from ? returned_to(ip, sp) : 0;
	if (entry) {
		shown += returned_from;
		ip = entry;
		sp -= sizeof(sp);
		leaf = true;
	}
	sample->stack_id =
		stack_shown(thread, &thread->sample_stack, task->tgid, shown, ip, sp, bp, leaf);
	sample_account(sample->time_ns, thread->sample_walk_ns);
	bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
	return 0;
}
