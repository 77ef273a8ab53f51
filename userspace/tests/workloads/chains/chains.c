// SPDX-License-Identifier: GPL-2.0
/*
 * chains: known chains of calls down to an allocation of 100 KiB and its first touch. The tests
 * build it with -O2 -fomit-frame-pointer in several ways.
 *
 * usage: chains [LIBRARY]
 *   Waits for a line, then runs every scenario ROUNDS times. A scenario has a size of its own, by
 *   which its calls are known. With a library: opens it, waits again, and calls what it exports.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

#include "../workload.h"

#define ROUNDS 23
#define TICKS 101
#define BLOCK (100UL << 10)

struct job {
	size_t size;
	int clear;
	int depth;
};

/* Changed after every call: so that none is the last thing its function does, but that in to_the_end. */
static volatile int back;
static const struct job *job_of_handler;

static NOINLINE void touch(char *block, size_t size)
{
	size_t at;

	for (at = 0; at < size; at += 4096)
		((volatile char *)block)[at] = 1;
}

static NOINLINE void link_1(const struct job *job)
{
	char *block = job->clear ? calloc(1, job->size) : malloc(job->size);

	workload_sink = block;
	touch(block, job->size);
	back++;
}

#define LINK(n, below)                                       \
	static NOINLINE void link_##n(const struct job *job) \
	{                                                    \
		link_##below(job);                           \
		back++;                                      \
	}

/* clang-format off */
LINK(2, 1) LINK(3, 2) LINK(4, 3) LINK(5, 4) LINK(6, 5) LINK(7, 6) LINK(8, 7) LINK(9, 8)
LINK(10, 9) LINK(11, 10) LINK(12, 11) LINK(13, 12) LINK(14, 13) LINK(15, 14) LINK(16, 15)
LINK(17, 16) LINK(18, 17) LINK(19, 18) LINK(20, 19) LINK(21, 20) LINK(22, 21) LINK(23, 22)
LINK(24, 23) LINK(25, 24) LINK(26, 25) LINK(27, 26) LINK(28, 27) LINK(29, 28) LINK(30, 29)
	/* clang-format on */

	static NOINLINE void recurse_below(const struct job *job, int depth)
{
	if (depth > 1)
		recurse_below(job, depth - 1);
	else
		link_1(job);
	back++;
}

static NOINLINE void recurse(const struct job *job)
{
	recurse_below(job, job->depth);
	back++;
}

/* By a jump: the first of the two leaves no frame. */
static NOINLINE void tail_last(const struct job *job)
{
	link_1(job);
	back += 2; /* or it were link_2, the compiler finds */
}

static NOINLINE void tail_first(const struct job *job)
{
	back++;
	tail_last(job);
}

static NOINLINE void tail(const struct job *job)
{
	tail_first(job);
	back++;
}

static NOINLINE int compare(const void *one, const void *two)
{
	/* Once a sort: it compares two values three times at most, but the same ones once. */
	if (*(const int *)one + *(const int *)two == 3)
		link_1(job_of_handler);
	back++;
	return *(const int *)one - *(const int *)two;
}

static NOINLINE void sort(const struct job *job)
{
	int values[2] = { 2, 1 };

	job_of_handler = job;
	qsort(values, 2, sizeof(*values), compare);
	back++;
}

static NOINLINE void on_signal(int number)
{
	link_1(job_of_handler);
	back += number;
}

static void handle(int number, int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };

	sigaction(number, &action, NULL);
}

static NOINLINE void raised(const struct job *job)
{
	job_of_handler = job;
	handle(SIGUSR1, 0);
	raise(SIGUSR1);
	back++;
}

static NOINLINE void other_stack(const struct job *job)
{
	static char area[64 << 10];
	stack_t stack = { .ss_sp = area, .ss_size = sizeof(area) };

	job_of_handler = job;
	sigaltstack(&stack, NULL);
	handle(SIGUSR2, SA_ONSTACK);
	raise(SIGUSR2);
	back++;
}

/*
 * A signal at the very first instruction of a function. What stands right before it has a frame of
 * another size: whoever looks up one byte less, as is right for a return address, goes astray.
 */
void trap(void);

__asm__(".pushsection .text\n"
	".type before_trap, @function\n"
	"before_trap:\n"
	"	.cfi_startproc\n"
	"	.cfi_def_cfa_offset 4096\n"
	"	nop\n"
	"	.cfi_endproc\n"
	".size before_trap, . - before_trap\n"
	".globl trap\n"
	".type trap, @function\n"
	"trap:\n"
	"	.cfi_startproc\n"
	"	ud2\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size trap, . - trap\n"
	".popsection\n");

static NOINLINE void on_trap(int number, siginfo_t *info, void *context)
{
	ucontext_t *registers = context;

	(void)info;
	link_1(job_of_handler);
	registers->uc_mcontext.gregs[REG_RIP] += 2;
	back += number;
}

static NOINLINE void trapped(const struct job *job)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	job_of_handler = job;
	sigaction(SIGILL, &action, NULL);
	trap();
	back++;
}

/*
 * A call that never returns is the last thing of its function: what it would return to is the first
 * byte of the next one, whose frame has another size. Whoever does not look up one byte less goes
 * astray. That next one has no name: it would be taken for the caller by that.
 */
void to_the_end(const struct job *job);
__attribute__((noinline, noreturn)) void never_back(const struct job *job);

static jmp_buf way_back;

__attribute__((noinline, noreturn)) void never_back(const struct job *job)
{
	link_1(job);
	back++;
	longjmp(way_back, 1);
}

__asm__(".pushsection .text\n"
	".globl to_the_end\n"
	".type to_the_end, @function\n"
	"to_the_end:\n"
	"	.cfi_startproc\n"
	"	sub $8, %rsp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	call never_back\n"
	"	.cfi_endproc\n"
	".size to_the_end, . - to_the_end\n"
	"	.cfi_startproc\n"
	"	.cfi_def_cfa_offset 4096\n"
	"	nop\n"
	"	.cfi_endproc\n"
	".popsection\n");

static NOINLINE void unreturned(const struct job *job)
{
	if (!setjmp(way_back))
		to_the_end(job);
	back++;
}

/* The size of the frame is not known beforehand: it has to have a frame pointer. */
static NOINLINE void variable(const struct job *job)
{
	volatile char *room = alloca((size_t)(job->depth + back % 3));

	room[0] = 1;
	link_1(job);
	back += room[0];
}

/* The frame has to be moved to its alignment: the way back is not by a constant. */
static NOINLINE void aligned(const struct job *job)
{
	_Alignas(64) volatile char line[192];

	line[back & 127] = 1;
	link_1(job);
	back += line[1];
}

/* Three functions of the source, one of the machine code. */
static inline __attribute__((always_inline)) void inlined_innermost(const struct job *job)
{
	link_1(job);
	back += 3;
}

static inline __attribute__((always_inline)) void inlined_middle(const struct job *job)
{
	inlined_innermost(job);
	back += 5;
}

static NOINLINE void inlined(const struct job *job)
{
	inlined_middle(job);
	back += 7;
}

static NOINLINE void *work(void *job)
{
	link_1(job);
	back++;
	return NULL;
}

static NOINLINE void threaded(const struct job *job)
{
	pthread_t thread;

	pthread_create(&thread, NULL, work, (void *)job);
	pthread_join(thread, NULL);
	back++;
}

static volatile int ticks;

static NOINLINE void on_tick(int number)
{
	link_1(job_of_handler);
	ticks++;
	back += number;
}

static NOINLINE unsigned int leaf(unsigned int value)
{
	return value * 2654435761U ^ value >> 13;
}

/* A signal at any instruction: in leaves, in PLT entries, in the vdso, in prologues. */
static NOINLINE void interrupted(const struct job *job)
{
	const struct itimerval often = { .it_interval.tv_usec = 997, .it_value.tv_usec = 997 };
	const struct itimerval never = {};
	struct sigaction action = { .sa_handler = on_tick };
	unsigned int value = 1;
	struct timespec now;

	job_of_handler = job;
	ticks = 0;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (ticks < TICKS) {
		int round;

		for (round = 0; round < 97; round++) {
			value = leaf(value);
			value += (unsigned int)ffs((int)value) + (unsigned int)abs((int)value);
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
		value += (unsigned int)now.tv_nsec;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
	alarm(WORKLOAD_LIFE_S);
	back += (int)(value & 1);
}

static const struct scenario {
	const char *name;
	void (*run)(const struct job *job);
	int clear;
	int depth;
	int rounds;
} scenarios[] = {
	{ "malloc_1", link_1, 0, 0, ROUNDS },
	{ "malloc_7", link_7, 0, 0, ROUNDS },
	{ "malloc_30", link_30, 0, 0, ROUNDS },
	{ "calloc_1", link_1, 1, 0, ROUNDS },
	{ "calloc_7", link_7, 1, 0, ROUNDS },
	{ "calloc_30", link_30, 1, 0, ROUNDS },
	{ "recurse_20", recurse, 0, 20, ROUNDS },
	{ "recurse_300", recurse, 0, 300, ROUNDS },
	{ "tail", tail, 0, 0, ROUNDS },
	{ "sort", sort, 0, 0, ROUNDS },
	{ "raised", raised, 0, 0, ROUNDS },
	{ "other_stack", other_stack, 0, 0, ROUNDS },
	{ "trapped", trapped, 0, 0, ROUNDS },
	{ "unreturned", unreturned, 0, 0, ROUNDS },
	{ "variable", variable, 0, 1009, ROUNDS },
	{ "aligned", aligned, 0, 0, ROUNDS },
	{ "inlined", inlined, 0, 0, ROUNDS },
	{ "threaded", threaded, 0, 0, ROUNDS },
	{ "interrupted", interrupted, 0, 0, 1 },
};

/* Sizes as many as scenarios, all of them a little more than the block's. */
#define SIZE_OF(i) (BLOCK + 16 * (size_t)(i))

static void say(const char *name, size_t size, int calls)
{
	workload_report("\"scenario\": \"%s\", \"size\": %zu, \"calls\": %d", name, size, calls);
}

#ifndef WITHOUT_LIBRARY
static int in_library(const char *path)
{
	const struct job job = { .size = SIZE_OF(sizeof(scenarios) / sizeof(*scenarios)) };
	void *library = dlopen(path, RTLD_NOW);
	void (*enter)(void (*)(const void *), const void *);
	int round;

	if (!library)
		return 1;
	enter = (void (*)(void (*)(const void *), const void *))dlsym(library, "library_enter");
	if (!enter)
		return 1;
	workload_wait();
	for (round = 0; round < ROUNDS; round++) {
		enter((void (*)(const void *))link_1, &job);
		back++;
	}
	say("library", job.size, ROUNDS);
	return 0;
}
#endif

int main(int argc __attribute__((unused)), char **argv __attribute__((unused)))
{
	size_t i;

	alarm(WORKLOAD_LIFE_S);
	workload_wait();
	for (i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++) {
		const struct scenario *scenario = &scenarios[i];
		struct job job = { SIZE_OF(i), scenario->clear, scenario->depth };
		int round;

		for (round = 0; round < scenario->rounds; round++) {
			scenario->run(&job);
			back++;
		}
		say(scenario->name, job.size,
		    scenario->run == interrupted ? ticks : scenario->rounds);
	}
	workload_report("\"done\": true");
#ifndef WITHOUT_LIBRARY
	if (argc > 1)
		return in_library(argv[1]);
#endif
	return 0;
}
