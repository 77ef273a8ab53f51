// SPDX-License-Identifier: GPL-2.0
#include "events/syscall_names.h"

#include <stddef.h>
#include <sys/syscall.h>

static const struct {
	int number;
	const char *name;
} names[] = {
#define NAMED(call)               \
	{                         \
		SYS_##call, #call \
	}
	NAMED(mmap),
	NAMED(munmap),
	NAMED(mremap),
	NAMED(brk),
	NAMED(madvise),
	NAMED(mprotect),
	NAMED(pkey_mprotect),
	NAMED(mlock),
	NAMED(mlock2),
	NAMED(mlockall),
	NAMED(close),
	NAMED(exit),
	NAMED(exit_group),
	NAMED(execve),
	NAMED(execveat),
	NAMED(truncate),
	NAMED(ftruncate),
	NAMED(open),
	NAMED(unlink),
	NAMED(unlinkat),
	NAMED(fallocate),
	NAMED(ioctl),
	NAMED(io_uring_register),
	NAMED(io_uring_enter),
	NAMED(io_submit),
	NAMED(process_vm_readv),
	NAMED(process_vm_writev),
	NAMED(read),
	NAMED(pread64),
	NAMED(readv),
	NAMED(preadv),
	NAMED(preadv2),
	NAMED(write),
	NAMED(pwrite64),
	NAMED(writev),
	NAMED(pwritev),
	NAMED(pwritev2),
	NAMED(vmsplice),
	NAMED(splice),
	NAMED(sendmsg),
	NAMED(sendto),
	NAMED(sendmmsg),
	NAMED(recvmsg),
	NAMED(shmat),
	NAMED(shmdt),
	NAMED(shmctl),
	NAMED(shmget),
	NAMED(process_madvise),
	NAMED(futex),
	NAMED(fadvise64),
	NAMED(bpf),
	NAMED(migrate_pages),
	NAMED(move_pages),
	NAMED(fork),
	NAMED(vfork),
	NAMED(clone),
	NAMED(clone3),
	NAMED(wait4),
	NAMED(openat),
	NAMED(memfd_create),
	NAMED(dup3),
	NAMED(close_range),
	NAMED(process_mrelease),
	NAMED(ptrace),
	NAMED(setsockopt),
	NAMED(getsockopt),
	NAMED(userfaultfd),
	NAMED(munlock),
	NAMED(munlockall),
	NAMED(exit_group),
#undef NAMED
};

const char *syscall_name(int number)
{
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].number == number)
			return names[i].name;
	return number < 0 ? "" : "another system call";
}
