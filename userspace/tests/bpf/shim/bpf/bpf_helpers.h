/* SPDX-License-Identifier: GPL-2.0 */
/* bpf_helpers.h: libbpf's macros and the kernel's helpers, for programs that run in a test. */
#ifndef SHIM_BPF_HELPERS_H
#define SHIM_BPF_HELPERS_H

#include "tests/bpf/kernel.h"

#define SEC(name)
#define __ksym
#define __weak __attribute__((weak))
#define __hidden
#define __noinline __attribute__((noinline))
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))

/* Of a map's definition only the types tell anything: map_add(). */
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name

#define barrier() __asm__ volatile("" ::: "memory")
#define barrier_var(variable) asm volatile("" : "+r"(variable))

/* A word of a program's context, which only BPF has to load in a way of its own. */
#define CONTEXT_WORD(context, offset) (*(const __u64 *)((const char *)(context) + (offset)))

#define bpf_map_lookup_elem kernel_map_lookup
#define bpf_map_update_elem kernel_map_update
#define bpf_map_delete_elem kernel_map_delete
#define bpf_task_storage_get kernel_storage_get
#define bpf_ringbuf_output kernel_ring_output
#define bpf_ringbuf_reserve kernel_ring_reserve
#define bpf_ringbuf_submit kernel_ring_submit
#define bpf_ringbuf_query kernel_ring_query
#define bpf_probe_read_user kernel_read_user
#define bpf_probe_read_kernel kernel_read_kernel
#define bpf_probe_read_kernel_str kernel_read_kernel_string
#define bpf_rdonly_cast kernel_cast
#define bpf_ktime_get_ns kernel_clock
#define bpf_get_smp_processor_id() kernel.cpu
#define bpf_get_prandom_u32 kernel_random

#define bpf_get_current_task_btf() ((struct task_struct *)kernel.task)
#define bpf_get_current_task() ((__u64)kernel.task)
#define bpf_task_pt_regs(task) ((long)kernel.registers)
#define bpf_get_current_pid_tgid() \
	((__u64)bpf_get_current_task_btf()->tgid << 32 | (__u32)bpf_get_current_task_btf()->pid)
#define bpf_get_attach_cookie(context) ((void)(context), kernel.cookie)
#define bpf_get_func_ip(context) ((void)(context), kernel.function)
#define bpf_tail_call(context, map, index) kernel_refuses("bpf_tail_call")

/* As the kernel's: in the callback's hands until it returns 1. */
static inline long bpf_loop(__u32 count, void *callback, void *context, __u64 flags)
{
	long (*step)(__u32, void *) = (long (*)(__u32, void *))callback;
	__u32 i;

	(void)flags;
	(void)step;
	for (i = 0; i < count; i++)
		if (((int (*)(__u32, void *))callback)(i, context))
			return i + 1;
	return count;
}

/* Calls back with the area among kernel_area() that holds the address. */
static inline long bpf_find_vma(struct task_struct *task, __u64 address, void *callback,
				void *context, __u64 flags)
{
	long (*found)(struct task_struct *, struct vm_area_struct *, void *) = callback;
	struct vm_area_struct *area;
	long err = kernel_find_area(address, (void **)&area);

	(void)flags;
	return err ? err : found(task, area, context);
}

#endif /* SHIM_BPF_HELPERS_H */
