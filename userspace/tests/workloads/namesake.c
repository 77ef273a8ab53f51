// SPDX-License-Identifier: GPL-2.0
/*
 * namesake: a child ends, and another process gets its number at once.
 *
 * usage: namesake FIRST SECOND THIRD
 * Goes on with each line that it reads: forks a child; that one touches FIRST fresh pages and ends,
 * and another with its number, a child too, touches SECOND; and THIRD, and ends. Needs Linux 5.5 and
 * CAP_SYS_ADMIN.
 */
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "workload.h"

static int to_child[2], from_child[2];

static NOINLINE void touch(uint64_t pages)
{
	char *memory = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	if (memory == MAP_FAILED || madvise(memory, pages * 4096, MADV_NOHUGEPAGE))
		_exit(1);
	for (uint64_t i = 0; i < pages; i++)
		*(volatile char *)(memory + i * 4096) = 1;
	munmap(memory, pages * 4096);
}

static void pass(const int *pipe)
{
	if (write(pipe[1], "", 1) != 1)
		_exit(1);
}

static void await(const int *pipe)
{
	char byte;

	if (read(pipe[0], &byte, 1) != 1)
		_exit(1);
}

static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&pid,
		.set_tid_size = 1,
	};

	return syscall(SYS_clone3, &args, sizeof(args));
}

static int ends_well(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && !status;
}

int main(int argc, char **argv)
{
	pid_t child, other;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 4 || pipe(to_child) || pipe(from_child))
		return 2;
	workload_wait();
	child = fork();
	if (child < 0)
		return 1;
	if (!child) {
		await(to_child);
		touch(workload_number(argv[0], argv[1]));
		_exit(0);
	}
	workload_report("\"child\": %d", child);
	workload_wait();
	pass(to_child);
	if (!ends_well(child))
		return 1;
	other = fork_as(child);
	if (other < 0)
		return 1;
	if (!other) {
		alarm(WORKLOAD_LIFE_S);
		touch(workload_number(argv[0], argv[2]));
		pass(from_child);
		await(to_child);
		touch(workload_number(argv[0], argv[3]));
		_exit(0);
	}
	await(from_child);
	workload_report("\"other\": %d", other);
	workload_wait();
	pass(to_child);
	if (!ends_well(other))
		return 1;
	workload_report("\"ended\": %d", other);
	return 0;
}
