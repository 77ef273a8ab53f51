// SPDX-License-Identifier: GPL-2.0
/* calibrate_child.c: loops of known work that probes are measured on, by order of calibrate.c. */
#include "probes/calibrate_internal.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <glib.h>
#include <linux/types.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bpf/wire/pages.h"
#include "host/privileges.h"

#define SOME_PAGES 128
#define BLOCKS 512
#define CALLS 512
#define CACHE_LINE 64

static double cpu_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

/* Volatile: the compiler must neither drop nor merge the calls. */
static void *(*volatile call_malloc)(size_t) = malloc;
static void *(*volatile call_calloc)(size_t, size_t) = calloc;
static void (*volatile call_free)(void *) = free;
static void *(*volatile call_memset)(void *, int, size_t) = memset;
static void *(*volatile call_memcpy)(void *, const void *, size_t) = memcpy;

static void time_blocks(struct round *round)
{
	static void *blocks[BLOCKS];
	double start;
	int i;

	start = cpu_now();
	for (i = 0; i < BLOCKS; i++)
		blocks[i] = call_malloc(32);
	round->ns[F_MALLOC] = (cpu_now() - start) / BLOCKS;
	start = cpu_now();
	for (i = 0; i < BLOCKS; i++)
		call_free(blocks[i]);
	round->ns[F_FREE] = (cpu_now() - start) / BLOCKS;
	start = cpu_now();
	for (i = 0; i < BLOCKS; i++)
		blocks[i] = call_calloc(1, 32);
	round->ns[F_CALLOC] = (cpu_now() - start) / BLOCKS;
	for (i = 0; i < BLOCKS; i++)
		call_free(blocks[i]);
}

static void time_faults(struct round *round, volatile char *pages, int count)
{
	double start;
	int i;

	start = cpu_now();
	for (i = 0; i < count; i++)
		pages[i * MEMTOLL_PAGE_SIZE] = 1;
	round->ns[F_FAULT] = (cpu_now() - start) / count;
}

/* Ends the run of faults, so that it is sent. */
static void give_back(char *pages)
{
	madvise(pages, PAGES * MEMTOLL_PAGE_SIZE, MADV_DONTNEED);
}

static void time_calls(struct round *round)
{
	double start = cpu_now();
	int i;

	/* brk(0) changes nothing and is as short as a mapping call can be. */
	for (i = 0; i < CALLS; i++)
		syscall(SYS_brk, 0);
	round->ns[F_MAP] = (cpu_now() - start) / CALLS;
}

static void time_reads(struct round *round, int file)
{
	double start = cpu_now();
	char byte;
	int i;

	for (i = 0; i < CALLS; i++)
		if (pread(file, &byte, 1, 0) != 1)
			_exit(1);
	round->ns[F_READ] = (cpu_now() - start) / CALLS;
}

/* As on a socket: the program looks at the descriptor's file, and records nothing. */
static void time_other_reads(struct round *round, int event)
{
	double start = cpu_now();
	uint64_t value;
	int i;

	for (i = 0; i < CALLS; i++)
		if (read(event, &value, sizeof(value)) >= 0)
			_exit(1);
	round->ns[F_READ_OTHER] = (cpu_now() - start) / CALLS;
}

/* One that no program looks at. */
static void time_syscalls(struct round *round)
{
	double start = cpu_now();
	int i;

	for (i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	round->ns[F_SYSCALL] = (cpu_now() - start) / CALLS;
}

/*
 * Takes memory out of the caches: what the kernel clears, and what a program clears that is larger
 * than they are, comes from there.
 */
static void push_out(const char *memory, size_t bytes)
{
#if defined(__x86_64__)
	unsigned int eax, ebx = 0, ecx, edx;
	size_t i;

	__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
	for (i = 0; i < bytes; i += CACHE_LINE) {
		if (ebx & bit_CLFLUSHOPT)
			__asm__ volatile(".byte 0x66; clflush (%0)" : : "r"(memory + i) : "memory");
		else
			__asm__ volatile("clflush (%0)" : : "r"(memory + i) : "memory");
	}
	__asm__ volatile("mfence" : : : "memory");
#endif
}

/* Per call. */
static double time_memset(char *memory, size_t bytes, int times)
{
	double start = cpu_now();
	int i;

	for (i = 0; i < times; i++)
		call_memset(memory, 0, bytes);
	return (cpu_now() - start) / times;
}

/* As compilers clear what is small; per call. */
static double time_string(char *memory, size_t bytes, int times)
{
	double start = cpu_now();
	int i;

	for (i = 0; i < times; i++) {
#if defined(__x86_64__)
		size_t words = bytes / 8;
		void *at = memory;

		__asm__ volatile("rep stosq" : "+D"(at), "+c"(words) : "a"(0UL) : "memory");
#else
		call_memset(memory, 0, bytes);
#endif
	}
	return (cpu_now() - start) / times;
}

/* pages: faulted in already, which is another figure. */
static void time_clearing(struct round *round, char *pages, char *huge)
{
	double start;
	size_t i;

	round->ns[F_MEMSET] = time_memset(pages, PAGES * MEMTOLL_PAGE_SIZE, 1);
	time_memset(pages, NEAR_BYTES, 1);
	round->ns[F_MEMSET_SHORT] = time_memset(pages, SHORT_BYTES, SHORT_TIMES);
	round->ns[F_STRING_SHORT] = time_string(pages, SHORT_BYTES, SHORT_TIMES);
	round->ns[F_MEMSET_NEAR] = time_memset(pages, NEAR_BYTES, NEAR_TIMES);
	time_memset(pages, MIDDLE_BYTES, 1);
	round->ns[F_MEMSET_MIDDLE] = time_memset(pages, MIDDLE_BYTES, MIDDLE_TIMES);
	push_out(pages, FAR_BYTES);
	round->ns[F_MEMSET_FAR] = time_memset(pages, FAR_BYTES, 1);
	push_out(pages, FAR_BYTES);
	start = cpu_now();
	for (i = 0; i < FAR_BYTES / MEMTOLL_PAGE_SIZE; i++) {
		void *page = pages + i * MEMTOLL_PAGE_SIZE;
		size_t bytes = MEMTOLL_PAGE_SIZE;

#if defined(__x86_64__)
		/* As clear_page_erms() does it (arch/x86/lib/clear_page_64.S). */
		__asm__ volatile("rep stosb" : "+D"(page), "+c"(bytes) : "a"(0) : "memory");
#else
		call_memset(page, 0, bytes);
#endif
	}
	round->ns[F_CLEAR] = cpu_now() - start;
	round->ns[F_HUGE] = 0;
	if (!huge)
		return;
	/* It is likely to be got again. */
	push_out(huge, HUGE);
	madvise(huge, HUGE, MADV_DONTNEED);
	start = cpu_now();
	*(volatile char *)huge = 1;
	round->ns[F_HUGE] = cpu_now() - start;
}

static void time_copying(struct round *round, char *pages)
{
	size_t half = PAGES * MEMTOLL_PAGE_SIZE / 2;
	double start = cpu_now();

	call_memcpy(pages, pages + half, half);
	round->ns[F_COPY] = cpu_now() - start;
}

/* Turns of a loop that has to wait for the turn before, and for nothing else: a cycle each. */
static void time_loop(struct round *round)
{
	double start = cpu_now();
	int i;

	for (i = 0; i < LOOPS; i++)
		__asm__ volatile("" : "+r"(i));
	round->ns[F_LOOP] = (cpu_now() - start) / LOOPS;
}

/* The loops of a round, as many of them as the order wants. */
static void time_round(enum calibration_order order, struct round *round, char *pages, char *huge,
		       int file, int event)
{
	if (order != ORDER_SYSCALLS)
		time_blocks(round);
	if (order != ORDER_BLOCKS)
		time_syscalls(round);
	if (order != ORDER_BARE && order != ORDER_PROBED)
		return;
	time_calls(round);
	time_reads(round, file);
	time_other_reads(round, event);
	time_faults(round, pages, order == ORDER_BARE ? PAGES : SOME_PAGES);
	if (order == ORDER_BARE) {
		time_clearing(round, pages, huge);
		time_copying(round, pages);
		time_loop(round);
	}
	give_back(pages);
}

static char *map_pages(size_t size, int advice)
{
	char *memory =
		mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		_exit(1);
	memory = (char *)(((uintptr_t)memory + size - 1) & ~(size - 1));
	return madvise(memory, size, advice) && advice == MADV_HUGEPAGE ? NULL : memory;
}

void calibration_child(int order_fd, int result_fd)
{
	char *pages = map_pages(PAGES * MEMTOLL_PAGE_SIZE, MADV_NOHUGEPAGE);
	char *huge = map_pages(HUGE, MADV_HUGEPAGE);
	int file = memfd_create("memtoll", MFD_CLOEXEC);
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct round rounds[ROUNDS];
	char order;
	int i;

	if (file < 0 || event < 0 || ftruncate(file, 1))
		_exit(1);
	/* Else a thread of ours that has fewer may not look at it without CAP_SYS_PTRACE. */
	privileges_keep(PRIVILEGES_NONE);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(order_fd, &order, 1) == 1) {
		size_t answer = sizeof(rounds);

		if (order == ORDER_FAULTS) {
			time_faults(&rounds[0], pages, SOME_PAGES);
			give_back(pages);
			answer = sizeof(rounds[0]);
		}
		/* One round more than counted: the first warms caches and fresh memory. */
		for (i = -1; i < ROUNDS && order != ORDER_FAULTS; i++)
			time_round(order, &rounds[MAX(i, 0)], pages, huge, file, event);
		if (write(result_fd, rounds, answer) != (ssize_t)answer)
			break;
	}
	_exit(0);
}
