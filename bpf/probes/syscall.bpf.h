/* SPDX-License-Identifier: GPL-2.0 */
/*
 * syscall.bpf.h: the system calls that are watched, by their numbers. Their programs get the
 * arguments of the tracepoints sys_enter (registers, number) and sys_exit (registers, result) from
 * syscall.bpf.c (include/trace/events/syscalls.h).
 */
#ifndef MEMTOLL_SYSCALL_BPF_H
#define MEMTOLL_SYSCALL_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "wire/functions.h"
#include "state/thread.bpf.h"

#if defined(__TARGET_ARCH_x86)
enum {
	NR_MMAP = 9,
	NR_MPROTECT = 10,
	NR_MUNMAP = 11,
	NR_BRK = 12,
	NR_MREMAP = 25,
	NR_MADVISE = 28,
	NR_SHMAT = 30,
	NR_SHMDT = 67,
	NR_SYS_MLOCK = 149,
	NR_SYS_MLOCKALL = 151,
	NR_SYS_MLOCK2 = 325
};
enum {
	NR_READ = 0,
	NR_PREAD64 = 17,
	NR_READV = 19,
	NR_IO_SUBMIT = 209,
	NR_PREADV = 295,
	NR_PREADV2 = 327
};
enum { NR_WRITE = 1, NR_IOCTL = 16, NR_FADVISE64 = 221, NR_EXIT_GROUP = 231 };
/* By which return probes come back to the kernel (6.11 and later, kernel commit 190fec72df4a). */
enum { NR_URETPROBE = 335 };
#elif defined(__TARGET_ARCH_arm64)
enum {
	NR_MMAP = 222,
	NR_MPROTECT = 226,
	NR_MUNMAP = 215,
	NR_BRK = 214,
	NR_MREMAP = 216,
	NR_MADVISE = 233,
	NR_SHMAT = 196,
	NR_SHMDT = 197,
	NR_SYS_MLOCK = 228,
	NR_SYS_MLOCKALL = 230,
	NR_SYS_MLOCK2 = 284
};
enum {
	NR_READ = 63,
	NR_PREAD64 = 67,
	NR_READV = 65,
	NR_IO_SUBMIT = 2,
	NR_PREADV = 69,
	NR_PREADV2 = 286
};
enum { NR_WRITE = 64, NR_IOCTL = 29, NR_FADVISE64 = 223, NR_EXIT_GROUP = 94 };
enum { NR_URETPROBE = -1 };
#endif

/* Calls that are only counted are flushed in batches of this size, and when their thread ends. */
#define PASSES_AT_ONCE 64

/* The system call that a task is in: -1 where it came by an exception. */
static __always_inline __s32 syscall_nr(const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->orig_ax;
#elif defined(__TARGET_ARCH_arm64)
	return regs->syscallno;
#endif
}

/* Whether the call that a task is in is one of a 32-bit program: its numbers are others. */
static __always_inline bool is_compat(const struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return task->thread_info.status & 0x2; /* TS_COMPAT, asm/thread_info.h */
#elif defined(__TARGET_ARCH_arm64)
	return task->thread_info.flags & 1UL << 22; /* TIF_32BIT, asm/thread_info.h */
#endif
}

static __always_inline __u32 map_fn_of(__s32 nr)
{
	switch (nr) {
	case NR_MMAP:
		return MAP_FN_MMAP;
	case NR_MUNMAP:
	case NR_SHMDT:
		return MAP_FN_MUNMAP;
	case NR_MREMAP:
		return MAP_FN_MREMAP;
	case NR_BRK:
		return MAP_FN_BRK;
	case NR_MADVISE:
		return MAP_FN_MADVISE;
	case NR_MPROTECT:
		return MAP_FN_MPROTECT;
	case NR_SYS_MLOCK:
		return MAP_FN_MLOCK;
	case NR_SYS_MLOCK2:
		return MAP_FN_MLOCK2;
	case NR_SYS_MLOCKALL:
		return MAP_FN_MLOCKALL;
	default:
		return MAP_FN_NONE;
	}
}

static __always_inline __u32 read_fn_of(__s32 nr)
{
	switch (nr) {
	case NR_READ:
		return READ_FN_READ;
	case NR_PREAD64:
		return READ_FN_PREAD;
	case NR_READV:
		return READ_FN_READV;
	case NR_PREADV:
		return READ_FN_PREADV;
	case NR_PREADV2:
		return READ_FN_PREADV2;
	case NR_IO_SUBMIT:
		return READ_FN_IO_SUBMIT;
	default:
		return READ_FN_NONE;
	}
}

/* glibc extends an arena by mprotect: the part opened during a calloc is not cleared by it. */
static __always_inline void arena_extended(struct thread *thread, __u64 addr)
{
	if (thread->in_fn == FN_CALLOC && !thread->call.fresh_from)
		thread->call.fresh_from = addr;
}

#endif /* MEMTOLL_SYSCALL_BPF_H */
