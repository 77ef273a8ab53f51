// SPDX-License-Identifier: GPL-2.0
/*
 * return_probe.bpf.c: stacks of programs that uprobes have changed: return addresses that a return
 * probe has replaced, and instructions that run in the kernel's page.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "wire/pages.h"
#include "state/loop.bpf.h"
#include "state/walks.bpf.h"
#include "stacks/return_probe.bpf.h"

/*
 * The kernel's page among the program's code (kernel/events/uprobes.c). Its first slot is where a
 * function returns to that a return probe waits for; in the others probed instructions are
 * executed.
 */
#define PROBE_SLOT_BYTES 128 /* UPROBE_XOL_SLOT_BYTES */
#define BREAKPOINT 0xcc

/*
 * Bytes the code for returns (arch/x86/kernel/uprobes.c, uretprobe_trampoline_entry) has on the
 * stack at an instruction of it: push %rax; push %rcx; push %r11; mov $..., %rax; syscall; pop
 * %r11; pop %rcx; ret, to what the kernel put in the place of rax. Before 6.11 it is a breakpoint.
 */
#define RETURN_AFTER_SYSCALL 13 /* offset of what follows the system call */

/* A global function: the verifier would go on with each of the numbers. */
__noinline __u64 pushed_for_return(__u64 code, __u64 offset)
{
	__u8 first = BREAKPOINT;

	bpf_probe_read_user(&first, sizeof(first), (void *)code);
	if (first == BREAKPOINT || !offset)
		return 0;
	if (offset == 1 || offset > RETURN_AFTER_SYSCALL + 2)
		return 8;
	return offset < 4 || offset > RETURN_AFTER_SYSCALL ? 16 : 24;
}

#define RETURNS_MAX 64 /* MAX_URETPROBE_DEPTH, include/linux/uprobes.h */

/* A return that the kernel waits for, of a search for the one of a place on the stack. */
struct awaited_return {
	__u64 slot;
	struct return_instance *instance;
	__u64 address;
};

static int return_look(__u32 i, void *context)
{
	struct awaited_return *search = context;
	struct return_instance *instance = search->instance;

	if (!instance)
		return 1;
	if (BPF_CORE_READ(instance, stack) == search->slot) {
		search->address = BPF_CORE_READ(instance, orig_ret_vaddr);
		return 1;
	}
	search->instance = BPF_CORE_READ(instance, next);
	return 0;
}

static __always_inline void find_return(struct task_struct *task, struct awaited_return *search)
{
	search->address = 0;
	search->instance = BPF_CORE_READ(task, utask, return_instances);
	repeat(RETURNS_MAX, return_look, search);
}

/* The return address whose place on the stack a return probe has taken, or 0. */
__u64 true_return(__u64 slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct awaited_return search = { .slot = slot };

	if (!bpf_core_field_exists(task->utask))
		return 0;
	find_return(task, &search);
	return search.address;
}

/*
 * Where ip is in the kernel's page: the program's own place instead, which may be a return address.
 * 1: done.
 */
int unwind_see_through(struct unwind *walk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 page, offset, slot, pushed = 0;
	struct awaited_return search;

	if (!walk || !bpf_core_field_exists(task->utask))
		return 0;
	page = probe_page(task);
	offset = walk->ip - page;
	if (!page || offset >= MEMTOLL_PAGE_SIZE)
		return 0;
	if (offset >= PROBE_SLOT_BYTES) {
		slot = BPF_CORE_READ(task, utask, xol_vaddr);
		if (walk->ip - slot >= PROBE_SLOT_BYTES)
			return 0;
		walk->ip += BPF_CORE_READ(task, utask, vaddr) - slot;
		walk->irregular = 1;
		return 1;
	}
	if (walk->exact)
		pushed = pushed_for_return(page, offset);
	search.slot = walk->sp + pushed - 8;
	/* Inlined: functions may call one another eight deep. */
	find_return(task, &search);
	/* No longer waited for: the probe has run, and the program goes on at what it left here. */
	if (!search.address &&
	    (!pushed || offset < RETURN_AFTER_SYSCALL ||
	     bpf_probe_read_user(&search.address, sizeof(search.address), (void *)search.slot) ||
	     search.address - page < MEMTOLL_PAGE_SIZE))
		return 0;
	walk->ip = search.address;
	walk->sp = search.slot + 8;
	walk->exact = 0;
	walk->irregular = 1;
	return 1;
}
