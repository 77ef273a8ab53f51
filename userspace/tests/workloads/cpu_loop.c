// SPDX-License-Identifier: GPL-2.0
/*
 * cpu_loop: computes and allocates nothing (casebook, entry 8).
 *
 * usage: cpu_loop MILLISECONDS [--wait | --compat]
 * Runs until it has used that much CPU time, so that a busy machine does not shorten it. --compat:
 * then COMPAT_CALLS link(NULL, NULL) as 32-bit programs call it, whose number is that of mmap.
 */
#include <setjmp.h>
#include <signal.h>

#include "workload.h"

#define COMPAT_CALLS 199
#define COMPAT_LINK 9

static sigjmp_buf refused;

static void on_fault(int signal)
{
	siglongjmp(refused, signal);
}

/* How many were made: 0 where the kernel has no such calls. */
static unsigned int call_as_32_bits(void)
{
	volatile unsigned int calls = 0;

	signal(SIGSEGV, on_fault);
	if (sigsetjmp(refused, 1))
		return 0;
#if defined(__x86_64__)
	while (calls < COMPAT_CALLS) {
		long result = COMPAT_LINK;

		__asm__ volatile("int $0x80" : "+a"(result) : "b"(0), "c"(0) : "memory");
		if (result != -EFAULT)
			return 0;
		calls++;
	}
#endif
	return calls;
}

static NOINLINE uint64_t compute(uint64_t state)
{
	for (int i = 0; i < 100000; i++)
		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state;
}

int main(int argc, char **argv)
{
	uint64_t limit, state = 1, rounds = 0;
	unsigned int compat = 0;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 2)
		return 2;
	limit = workload_number(argv[0], argv[1]) * 1000000ULL;
	if (argc > 2 && !strcmp(argv[2], "--wait"))
		workload_wait();
	while (workload_clock(CLOCK_PROCESS_CPUTIME_ID) < limit) {
		state = compute(state);
		rounds++;
	}
	if (argc > 2 && !strcmp(argv[2], "--compat"))
		compat = call_as_32_bits();
	workload_report("\"rounds\": %llu, \"state\": %llu, \"compat\": %u",
			(unsigned long long)rounds, (unsigned long long)state, compat);
	return 0;
}
