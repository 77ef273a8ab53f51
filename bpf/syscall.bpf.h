/* SPDX-License-Identifier: GPL-2.0 */
/*
 * syscall.bpf.h: layout of syscalls/sys_enter_* and sys_exit_* (perf_call_bpf_enter and _exit in
 * kernel/trace/trace_syscalls.c). The four bytes after nr are not initialised.
 */
#ifndef MEMTOLL_SYSCALL_BPF_H
#define MEMTOLL_SYSCALL_BPF_H

struct sys_enter_args {
	__u64 common;
	__s32 nr;
	__u32 unused;
};

struct sys_exit_args {
	__u64 common;
	__s32 nr;
	__u32 unused;
	__s64 ret;
};

#endif /* MEMTOLL_SYSCALL_BPF_H */
