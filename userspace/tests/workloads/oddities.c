// SPDX-License-Identifier: GPL-2.0
/*
 * oddities: processes that are not what a tracer expects, and make their calls all the same.
 *
 * usage: oddities memfd|borrower|renamer|locked CALLS
 *   memfd     runs from a file that has no name and no directory
 *   borrower  has a child of its own in its memory (CLONE_VM without CLONE_THREAD), which maps CALLS
 *             pages and ends
 *   renamer   has another name before each call, of whatever bytes
 *   locked    may not make a system call but read, write and exit (seccomp's strict mode)
 * Each gets CALLS blocks by calloc.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "workload.h"

#define BLOCK 70000
#define PAGE 4096UL
#define STACK (64UL << 10)
#define NAME 16 /* TASK_COMM_LEN */

static uint64_t calls;

static NOINLINE void take_block(void)
{
	void *block = calloc(1, BLOCK); /* SITE calloc */

	workload_sink = block;
	free(block);
}

static void take_blocks(void)
{
	for (uint64_t i = 0; i < calls; i++)
		take_block();
}

static int run_memfd(char **argv)
{
	char *const command[] = { argv[0], "plain", argv[2], NULL };
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = memfd_create("", MFD_CLOEXEC);
	char buffer[PAGE];
	ssize_t got;

	while ((got = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, (size_t)got) != got)
			return 1;
	fexecve(to, command, environ);
	return 1;
}

/* Only system calls: it has the thread-local variables of its parent, which waits. */
static int map_pages(void *unused)
{
	for (uint64_t i = 0; i < calls; i++) {
		char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);

		if (page == MAP_FAILED)
			_exit(1);
		*(volatile char *)page = 1;
		munmap(page, PAGE);
	}
	_exit(unused ? 1 : 0);
}

static int borrow(void)
{
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t child;

	if (stack == MAP_FAILED)
		return 1;
	child = clone(map_pages, stack + STACK, CLONE_VM | SIGCHLD, NULL);
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		return 1;
	take_blocks();
	workload_report("\"child\": %d", child);
	return 0;
}

static int rename_often(void)
{
	uint64_t bytes[NAME / sizeof(uint64_t)] = { 0x1b, 0 };

	for (uint64_t i = 0; i < calls; i++) {
		/* Knuth's multiplier: each name begins with another byte. */
		bytes[0] = bytes[0] * 6364136223846793005ULL + 1;
		bytes[1] = bytes[0] ^ i;
		if (prctl(PR_SET_NAME, bytes))
			return 1;
		take_block();
	}
	workload_report("\"calls\": %llu", (unsigned long long)calls);
	return 0;
}

static int lock(void)
{
	/* Nor may the heap grow or shrink any more. */
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_MMAP_THRESHOLD, 1 << 24);
	free(malloc(1 << 20));
	workload_report("\"calls\": %llu", (unsigned long long)calls);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		return 1;
	take_blocks();
	syscall(SYS_exit, 0);
	return 1;
}

int main(int argc, char **argv)
{
	alarm(WORKLOAD_LIFE_S);
	if (argc < 3)
		return 2;
	calls = workload_number(argv[0], argv[2]);
	if (!strcmp(argv[1], "memfd"))
		return run_memfd(argv);
	if (!strcmp(argv[1], "borrower"))
		return borrow();
	if (!strcmp(argv[1], "renamer"))
		return rename_often();
	if (!strcmp(argv[1], "locked"))
		return lock();
	take_blocks();
	workload_report("\"calls\": %llu", (unsigned long long)calls);
	return strcmp(argv[1], "plain") ? 2 : 0;
}
