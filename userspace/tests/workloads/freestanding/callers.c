// SPDX-License-Identifier: GPL-2.0
/*
 * callers: calls every function of the malloc family. It starts by itself, not by the C library's
 * start files, and so runs with C libraries older than the one it was linked with (unless WITH_MAIN is
 * defined: musl needs its own).
 *
 * usage: callers serve        each function over and over, with arguments that differ, until
 *                             standard input ends
 *        callers trim SIZE N  N rounds of two callocs that live at the same time: a round's frees trim
 *                             the heap, its callocs grow it again
 *        callers reuse SIZE N N times calloc and free
 *        callers small SIZE N N times malloc, write, free, calloc and free: the sum of what calloc's
 *                             blocks hold, all of it memory that was used before
 * One line of JSON: the pid at the start, minor faults of the rounds at the end.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef WITH_MAIN
__asm__(".globl _start\n_start:\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call run\n"
	"	hlt\n");
#endif

static void *volatile sink;

static long minor_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

static void drop(void *block)
{
	sink = block;
	free(block);
}

static void call_each(size_t n)
{
	void *block, *behind;

	drop(malloc(37 + n));
	drop(calloc(3 + n % 5, 41));
	block = malloc(101);
	sink = block;
	drop(realloc(block, 211 + n));
	drop(reallocarray(NULL, 7 + n % 3, 53));
	if (posix_memalign(&block, 64, 301 + n) == 0)
		drop(block);
	drop(aligned_alloc(64, 128 + 64 * (n % 7)));
	drop(memalign(128, 401 + n));
	drop(valloc(509 + n));
	/* Of these the caches of threads have none. */
	drop(malloc(10007 + n));
	drop(calloc(3, 10007 + n));
	block = malloc(10007 + n);
	behind = malloc(10007);
	drop(realloc(block, 30011 + n));
	free(behind);
	free(NULL);
}

static void serve(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	printf("{\"pid\": %d}\n", (int)getpid());
	fflush(stdout);
	for (size_t n = 0; poll(&input, 1, 1) == 0; n++)
		call_each(n % 1009);
}

static void clear(size_t size, long rounds, size_t live)
{
	void *blocks[2];
	long before;

	/* The first two frees move the threshold of blocks with a mapping of their own. */
	for (long round = -3; round < rounds; round++) {
		if (round == 0)
			before = minor_faults();
		for (size_t i = 0; i < live; i++) {
			blocks[i] = calloc(size, 1);
			if (!blocks[i])
				_exit(1);
			/* So that what is returned next is not clean. */
			memset((char *)blocks[i] + size / 2, 1, 1);
		}
		for (size_t i = 0; i < live; i++)
			drop(blocks[i]);
	}
	printf("{\"pid\": %d, \"minflt\": %ld}\n", (int)getpid(), minor_faults() - before);
	fflush(stdout);
}

static void reuse_small(size_t size, long rounds)
{
	size_t usable = 0;
	void *block;

	for (long round = 0; round < rounds; round++) {
		block = malloc(size);
		memset(block, 0xff, size);
		drop(block);
		block = calloc(size, 1);
		usable += malloc_usable_size(block);
		drop(block);
	}
	printf("{\"pid\": %d, \"usable\": %zu}\n", (int)getpid(), usable);
	fflush(stdout);
}

static int act(int count, char **arguments)
{
	if (count == 2 && strcmp(arguments[1], "serve") == 0)
		serve();
	else if (count == 4 && strcmp(arguments[1], "trim") == 0)
		clear(strtoul(arguments[2], NULL, 10), atol(arguments[3]), 2);
	else if (count == 4 && strcmp(arguments[1], "reuse") == 0)
		clear(strtoul(arguments[2], NULL, 10), atol(arguments[3]), 1);
	else if (count == 4 && strcmp(arguments[1], "small") == 0)
		reuse_small(strtoul(arguments[2], NULL, 10), atol(arguments[3]));
	else
		return 2;
	return 0;
}

#ifdef WITH_MAIN
int main(int count, char **arguments)
{
	return act(count, arguments);
}
#else
__attribute__((noreturn, used)) void run(uintptr_t *stack)
{
	_exit(act((int)stack[0], (char **)(stack + 1)));
}
#endif
