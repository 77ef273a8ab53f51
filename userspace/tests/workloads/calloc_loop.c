// SPDX-License-Identifier: GPL-2.0
/*
 * calloc_loop: free(calloc(SIZE, 1)) again and again (casebook, entry 1).
 *
 * usage: calloc_loop SIZE N [--touch] [--live COUNT] [--wait] [--seconds S] [--rest US]
 *               [--walled]
 *   --touch      write one byte of every page of each block
 *   --live 2     blocks alive in a round; N is still the number of calls
 *   --wait       report "ready", then wait for a line on standard input
 *   --seconds S  run for S seconds instead of N calls and report the pace
 *   --rest US    sleep so long after each round
 *   --walled     something lies right behind the heap, which cannot grow (wall.h)
 */
#include "wall.h"
#include "workload.h"

#define LIVE_MAX 16
#define PAGE 4096

struct options {
	uint64_t size;
	uint64_t calls;
	uint64_t live;
	uint64_t seconds;
	uint64_t rest_us;
	int touch;
	int wait;
};

static NOINLINE void *clear_block(uint64_t size)
{
	void *block = calloc(size, 1); /* SITE calloc */

	workload_sink = block;
	return block;
}

static NOINLINE void touch_block(volatile char *block, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += PAGE)
		block[at] = 1; /* SITE touch */
}

static NOINLINE void drop_block(void *block)
{
	free(block); /* SITE free */
	workload_sink = NULL;
}

static uint64_t one_round(const struct options *opt, uint64_t count)
{
	void *blocks[LIVE_MAX];
	uint64_t made;

	for (made = 0; made < count; made++) {
		blocks[made] = clear_block(opt->size);
		if (!blocks[made])
			break;
		if (opt->touch)
			touch_block(blocks[made], opt->size);
	}
	for (uint64_t i = 0; i < made; i++)
		drop_block(blocks[i]);
	if (opt->rest_us)
		usleep(opt->rest_us);
	return made;
}

static uint64_t run(const struct options *opt)
{
	struct workload_pace pace;
	uint64_t calls = 0;

	if (opt->seconds) {
		workload_pace_start(&pace, opt->seconds);
		do
			calls += one_round(opt, opt->live);
		while (workload_pace_step(&pace, calls));
		return calls;
	}
	while (calls < opt->calls) {
		uint64_t left = opt->calls - calls;
		uint64_t count = left < opt->live ? left : opt->live;
		uint64_t made = one_round(opt, count);

		calls += made;
		if (made < count)
			break;
	}
	return calls;
}

int main(int argc, char **argv)
{
	struct options opt = { .live = 1 };
	uint64_t cpu, calls;

	alarm(WORKLOAD_LIFE_S);
	if (argc < 3)
		return 2;
	opt.size = workload_number(argv[0], argv[1]);
	opt.calls = workload_number(argv[0], argv[2]);
	for (int i = 3; i < argc; i++) {
		if (!strcmp(argv[i], "--touch"))
			opt.touch = 1;
		else if (!strcmp(argv[i], "--wait"))
			opt.wait = 1;
		else if (!strcmp(argv[i], "--live") && i + 1 < argc)
			opt.live = workload_number(argv[0], argv[++i]);
		else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
			opt.seconds = workload_number(argv[0], argv[++i]);
		else if (!strcmp(argv[i], "--rest") && i + 1 < argc)
			opt.rest_us = workload_number(argv[0], argv[++i]);
		else if (strcmp(argv[i], "--walled") || !wall())
			return 2;
	}
	if (opt.live < 1 || opt.live > LIVE_MAX)
		return 2;
	if (opt.wait) {
		workload_wait();
		alarm(WORKLOAD_LIFE_S);
	}
	cpu = workload_clock(CLOCK_PROCESS_CPUTIME_ID);
	calls = run(&opt);
	cpu = workload_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	workload_report("\"calls\": %llu, \"bytes\": %llu, \"loop_cpu_ns\": %llu",
			(unsigned long long)calls, (unsigned long long)(calls * opt.size),
			(unsigned long long)cpu);
	return opt.seconds || calls == opt.calls ? 0 : 1;
}
