// SPDX-License-Identifier: GPL-2.0
/* The budget, kept against a target that is simulated: all costs are known exactly. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "budget/governor.h"

#define MS 1000000.0
#define SECOND (1000 * MS)

/* A program that is always on the CPU, and what became of it. */
struct program {
	double threads;
	double calls[FN_COUNT]; /* per nanosecond of its own time */
	double faults;
	double fault_ns;    /* what each costs; 0: what it calibrated */
	double fault_lump;  /* one of so many is timed for all; 0: of 64 */
	double other_reads; /* of sockets, by read(2) */
	double plain_reads; /* of files, also per second */
	double starts;	    /* of processes that are not looked at, per nanosecond */
	bool unwatched;	    /* no system call is watched (syscall_idle.c) */
	double syscalls;    /* that are slower because some are */
	double dearer;	    /* a hit costs so many times what was calibrated */
	double own_ns;
	double cpu_ns;
	double spent_ns;
	double now_ns;
	double rates[FN_COUNT];
	double idle;
	double fault_count;
	double other_count, plain_count, unwatched_count, syscall_count;
	double watched_ns[PROBE_GROUPS];
	unsigned int windows; /* of the pair */
	unsigned int looks;
	double longest_away_ns;
	double longest_open_ns; /* that the pair would have stayed open without us */
	double shortest_open_ns;
	struct governor_order order;
};

#define FAULT_NS 200.0
/* Ways in and out of its program, which no clock in it sees. */
#define FAULT_OUTSIDE_NS 50.0

static const struct calibration_result prices = {
	.malloc = { .hit_ns = 1000 },
	.calloc = { .hit_ns = 1000 },
	.free = { .hit_ns = 1000 },
	.idle = { .hit_ns = 500 },
	.fault = { .hit_ns = FAULT_NS },
	.map = { .hit_ns = 300 },
	.read = { .hit_ns = 700 },
	.read_other = { .hit_ns = 200 },
	.syscall = { .hit_ns = 50 },
	.fault_begin_ns = FAULT_NS - FAULT_OUTSIDE_NS,
};

/* Run until the governor wants to look again. */
static void run_on(struct program *program, double ns)
{
	double cost = program->faults * program->fault_ns + program->syscalls * 50, own, part;
	bool reads = program->order.attached & 1U << GROUP_READ && !program->unwatched;
	unsigned int fn;

	if (reads)
		cost += program->other_reads * 200 + program->plain_reads * 700;
	for (fn = FN_MALLOC; fn < FN_COUNT; fn++) {
		unsigned int group = 1U << probe_group_of(fn);

		if (program->order.counting & group)
			cost += program->calls[fn] * 1000 * program->dearer;
		else if (program->order.attached & group)
			cost += program->calls[fn] * 500 * program->dearer;
	}
	own = ns * program->threads / (1 + cost);
	program->own_ns += own;
	program->cpu_ns += ns * program->threads;
	program->spent_ns += own * cost;
	program->now_ns += ns;
	program->fault_count += own * program->faults;
	program->syscall_count += own * program->syscalls;
	*(reads ? &program->plain_count : &program->unwatched_count) += own * program->plain_reads;
	if (reads)
		program->other_count += own * program->other_reads;
	for (fn = FN_MALLOC; fn < FN_COUNT; fn++) {
		unsigned int group = 1U << probe_group_of(fn);

		part = own * program->calls[fn];
		if (program->order.counting & group)
			program->rates[fn] += part;
		else if (program->order.attached & group)
			program->idle += part;
	}
}

static struct governor_reading reading_of(const struct program *program)
{
	struct governor_reading reading = {
		.now_ns = program->now_ns,
		.cpu_ns = program->cpu_ns,
		.syscalls = program->syscall_count,
		.rates.idle[FN_MALLOC] = program->idle,
		.rates.faults = program->fault_count,
		.rates.fault_ns = floor(program->fault_count / program->fault_lump) *
				  program->fault_lump * (program->fault_ns - FAULT_OUTSIDE_NS),
		.rates.reads = program->plain_count,
		.rates.plain_reads = program->plain_count,
		.rates.other_reads = program->other_count,
		.rates.unwatched_reads = program->unwatched_count,
		.rates.brief_starts = program->now_ns * program->starts,
	};
	unsigned int fn;

	for (fn = FN_MALLOC; fn < FN_COUNT; fn++)
		reading.rates.calls[fn] = program->rates[fn];
	return reading;
}

/* A tracer takes 5 ms to attach and never comes earlier than a tenth of a millisecond later. */
static void simulate(struct governor *governor, struct program *program, double seconds)
{
	double end = program->now_ns + seconds * SECOND, closed_ns = 0;
	int group;

	if (!program->threads)
		program->threads = 1;
	if (!program->dearer)
		program->dearer = 1;
	if (!program->fault_ns)
		program->fault_ns = FAULT_NS;
	if (!program->fault_lump)
		program->fault_lump = 64;
	while (program->now_ns < end) {
		struct governor_reading reading = reading_of(program);
		struct governor_order order = governor_step(governor, &reading);
		double ns =
			order.next_ns > reading.now_ns ? order.next_ns - reading.now_ns : 5 * MS;

		if (order.counting & ~program->order.counting & 1U << GROUP_PAIR) {
			program->windows++;
			if (closed_ns && program->now_ns - closed_ns > program->longest_away_ns)
				program->longest_away_ns = program->now_ns - closed_ns;
		}
		if (program->order.counting & ~order.counting & 1U << GROUP_PAIR)
			closed_ns = program->now_ns;
		if (order.counting & 1U << GROUP_PAIR) {
			double left = order.until_ns - program->now_ns;

			if (left > program->longest_open_ns)
				program->longest_open_ns = left;
			if (!program->shortest_open_ns || left < program->shortest_open_ns)
				program->shortest_open_ns = left;
		}
		program->order = order;
		program->looks++;
		assert_int_equal(order.counting & ~order.attached, 0);
		for (group = 0; group < PROBE_GROUPS; group++)
			if (order.counting & 1U << group)
				program->watched_ns[group] += ns;
		run_on(program, ns + 0.1 * MS);
	}
}

static double share_spent(const struct program *program)
{
	return program->spent_ns / program->cpu_ns;
}

static void test_cheap_is_always_watched(void **state)
{
	struct governor *governor = governor_new(0.05, false, &prices, false);
	struct program program = {
		/* 40,000 hits a second of its own time: 4 %. */
		.calls = { [FN_MALLOC] = 20e-6, [FN_FREE] = 20e-6 },
	};

	(void)state;
	simulate(governor, &program, 20);
	assert_int_equal(program.order.counting, GROUPS_ALL);
	assert_int_equal(program.windows, 1);
	governor_free(governor);
}

/*
 * What costs next to nothing may stay open for long, should nobody come; a window hardly longer
 * than it is paid for.
 */
static void test_windows_end_by_themselves(void **state)
{
	struct program cheap = { .calls = { [FN_MALLOC] = 1e-6, [FN_FREE] = 1e-6 } };
	struct program hot = { .calls = { [FN_MALLOC] = 2e-3, [FN_FREE] = 2e-3 } };
	struct governor *governor = governor_new(0.05, false, &prices, false);

	(void)state;
	simulate(governor, &cheap, 5);
	assert_true(cheap.shortest_open_ns > 2 * SECOND);
	governor_free(governor);
	governor = governor_new(0.05, false, &prices, false);
	simulate(governor, &hot, 5);
	/* What it costs is known from the first one on. */
	hot.longest_open_ns = 0;
	simulate(governor, &hot, 20);
	assert_true(hot.windows > 8);
	assert_true(hot.longest_open_ns > 100 * MS);
	assert_true(hot.longest_open_ns < 200 * MS);
	governor_free(governor);
}

/*
 * A tracer that was stopped: of hits that were passed over it does not learn what probes cost when
 * they are open.
 */
static void test_goes_on_after_a_stop(void **state)
{
	struct program program = { .calls = { [FN_MALLOC] = 2e-3, [FN_FREE] = 2e-3 } };
	struct governor *governor = governor_new(0.05, false, &prices, false);
	struct governor_reading reading;
	double spent_ns, cpu_ns, open_ns;
	int stops;

	(void)state;
	simulate(governor, &program, 5);
	for (stops = 0; stops < 5; stops++) {
		while (!(program.order.counting & 1U << GROUP_PAIR))
			simulate(governor, &program, 0.001);
		program.order.counting = 0;
		run_on(&program, 3 * SECOND);
		reading = reading_of(&program);
		reading.shut = true;
		program.order = governor_step(governor, &reading);
		/* Those are charged, and the window is over. */
		assert_false(program.order.counting & 1U << GROUP_PAIR);
		assert_true(program.order.attached & 1U << GROUP_PAIR);
	}
	open_ns = program.watched_ns[GROUP_PAIR];
	spent_ns = program.spent_ns;
	cpu_ns = program.cpu_ns;
	simulate(governor, &program, 20);
	assert_true(program.watched_ns[GROUP_PAIR] > open_ns);
	assert_true((program.spent_ns - spent_ns) / (program.cpu_ns - cpu_ns) <= 0.0525);
	governor_free(governor);
}

/* A command's start is watched whole: 30 ms of probes in its first 100 ms. */
static void test_command_is_watched_from_its_start(void **state)
{
	struct program program = {
		.calls = { [FN_MALLOC] = 0.2e-3, [FN_FREE] = 0.2e-3 },
	};
	struct governor *governor = governor_new(0.05, true, &prices, false);
	uint64_t whole;

	(void)state;
	simulate(governor, &program, 0.1);
	whole = program.now_ns;
	assert_true(program.watched_ns[GROUP_PAIR] > 0.99 * whole);
	simulate(governor, &program, 20);
	assert_true(share_spent(&program) <= 0.0575);
	governor_free(governor);
}

/*
 * An interpreter that starts: a third of the time goes for what is never closed. Then it computes.
 */
static void test_faults_of_a_commands_start(void **state)
{
	struct program program = {
		.calls = { [FN_MALLOC] = 20e-6, [FN_FREE] = 20e-6, [FN_CALLOC] = 5e-6 },
		.faults = 2.5e-3,
	};
	struct governor *governor = governor_new(0.05, true, &prices, false);

	(void)state;
	simulate(governor, &program, 0.3);
	program.faults = 0;
	simulate(governor, &program, 3);
	assert_int_equal(program.windows, 1);
	assert_int_equal(program.order.counting, GROUPS_ALL);
	/* Not for ever: after its start it is charged for all of it, and the dearest one goes. */
	program.faults = 2.5e-3;
	simulate(governor, &program, 3);
	assert_true(program.watched_ns[GROUP_PAIR] < 0.7 * program.now_ns);
	assert_true(program.watched_ns[GROUP_CALLOC] > 0.99 * program.now_ns);
	governor_free(governor);
}

static void keeps(struct program program, double limit, double least_used, unsigned int windows)
{
	struct governor *governor = governor_new(limit, false, &prices, false);

	simulate(governor, &program, 20);
	assert_true(share_spent(&program) <= limit + 0.0025);
	assert_true(share_spent(&program) >= least_used * limit);
	assert_true(program.windows >= windows);
	governor_free(governor);
}

static void test_two_million_pairs(void **state)
{
	struct program program = { .calls = { [FN_MALLOC] = 2e-3, [FN_FREE] = 2e-3 } };

	(void)state;
	keeps(program, 0.05, 0.28, 8);
	keeps(program, 0.01, 0.24, 2);
	keeps(program, 0.2, 0.28, 8);
	program.threads = 16;
	keeps(program, 0.05, 0.28, 8);
	/* Next to nothing but malloc and free. */
	program.threads = 1;
	program.calls[FN_MALLOC] = program.calls[FN_FREE] = 50e-3;
	keeps(program, 0.05, 0.28, 8);
}

/* A hit costs more in this program than in the calibration: the window's whole time counts. */
static void test_dearer_than_calibrated(void **state)
{
	struct program program = {
		.calls = { [FN_MALLOC] = 2e-3, [FN_FREE] = 2e-3 },
		.dearer = 2,
	};
	struct governor *governor = governor_new(0.05, false, &prices, false);

	(void)state;
	simulate(governor, &program, 20);
	assert_true(share_spent(&program) <= 0.06);
	governor_free(governor);
}

static void test_malloc_and_free_go_first(void **state)
{
	struct program program = {
		.calls = { [FN_MALLOC] = 1e-3,
			   [FN_FREE] = 1e-3,
			   [FN_CALLOC] = 10e-6,
			   [FN_REALLOC] = 5e-6 },
	};
	struct governor *governor = governor_new(0.05, false, &prices, false);

	(void)state;
	simulate(governor, &program, 10);
	assert_true(program.watched_ns[GROUP_PAIR] < 0.2 * program.now_ns);
	assert_true(program.watched_ns[GROUP_CALLOC] > 0.95 * program.now_ns);
	assert_true(program.watched_ns[GROUP_OTHER] > 0.95 * program.now_ns);
	assert_true(share_spent(&program) <= 0.0525);
	/* Windows come every second or two; what calloc takes meanwhile puts them off. */
	assert_true(program.longest_away_ns < 5.5 * SECOND);
	governor_free(governor);
}

static void test_then_calloc(void **state)
{
	struct program program = {
		.calls = { [FN_MALLOC] = 1e-3,
			   [FN_FREE] = 2e-3,
			   [FN_CALLOC] = 1e-3,
			   [FN_REALLOC] = 5e-6 },
	};
	struct governor *governor = governor_new(0.05, false, &prices, false);

	(void)state;
	simulate(governor, &program, 10);
	assert_true(program.watched_ns[GROUP_CALLOC] < 0.2 * program.now_ns);
	assert_true(program.watched_ns[GROUP_OTHER] > 0.95 * program.now_ns);
	assert_true(share_spent(&program) <= 0.0525);
	governor_free(governor);
}

/* A hit of one more or less: the dearest does not go alone, with the other taking half of all. */
static void test_both_go_at_once(void **state)
{
	struct program program = { .calls = { [FN_FREE] = 1.8e-3, [FN_CALLOC] = 2e-3 } };
	struct governor *governor = governor_new(0.05, true, &prices, false);

	(void)state;
	simulate(governor, &program, 0.2);
	assert_int_equal(program.order.attached & (1U << GROUP_PAIR | 1U << GROUP_CALLOC), 0);
	simulate(governor, &program, 20);
	assert_true(program.longest_away_ns < 2.5 * SECOND);
	assert_true(share_spent(&program) <= 0.0525);
	governor_free(governor);
}

/* What costs next to nothing is not taken away, whatever its turn. */
static void test_only_what_costs(void **state)
{
	struct program program = {
		.calls = { [FN_MALLOC] = 1e-6, [FN_FREE] = 1e-6, [FN_REALLOC] = 2e-3 },
	};
	struct governor *governor = governor_new(0.05, false, &prices, false);

	(void)state;
	simulate(governor, &program, 10);
	assert_true(program.watched_ns[GROUP_PAIR] > 0.95 * program.now_ns);
	assert_true(program.watched_ns[GROUP_OTHER] < 0.2 * program.now_ns);
	assert_true(share_spent(&program) <= 0.0525);
	governor_free(governor);
}

static void test_comes_back(void **state)
{
	struct program program = { .calls = { [FN_MALLOC] = 2e-3, [FN_FREE] = 2e-3 } };
	struct governor *governor = governor_new(0.05, false, &prices, false);
	double watched;

	(void)state;
	simulate(governor, &program, 5);
	assert_true(program.watched_ns[GROUP_PAIR] < 0.2 * program.now_ns);
	program.calls[FN_MALLOC] = program.calls[FN_FREE] = 10e-6;
	simulate(governor, &program, 5);
	watched = program.watched_ns[GROUP_PAIR];
	simulate(governor, &program, 5);
	/* 0.1 ms a look are the tracer's. */
	assert_true(program.watched_ns[GROUP_PAIR] - watched > 4.9 * SECOND);
	/* And goes again. */
	program.calls[FN_MALLOC] = program.calls[FN_FREE] = 2e-3;
	simulate(governor, &program, 20);
	assert_true(share_spent(&program) <= 0.0525);
	governor_free(governor);
}

/*
 * In a window there may be nothing left beside hits, by their price: what calloc takes of so little
 * says nothing. It was judged while malloc was away.
 */
static void test_calloc_is_judged_outside_of_windows(void **state)
{
	struct program program = {
		.calls = { [FN_MALLOC] = 2e-3, [FN_FREE] = 2e-3, [FN_CALLOC] = 20e-6 },
		.dearer = 0.6,
	};
	struct governor *governor = governor_new(0.05, false, &prices, false);

	(void)state;
	simulate(governor, &program, 20);
	assert_true(program.watched_ns[GROUP_PAIR] < 0.2 * program.now_ns);
	assert_true(program.watched_ns[GROUP_CALLOC] > 0.95 * program.now_ns);
	governor_free(governor);
}

/* A server that reads sockets by read(2), 8 % of its time, and hardly calls the allocator. */
static void test_reads_of_sockets_go_first(void **state)
{
	struct governor *governor = governor_new(0.05, false, &prices, true);
	struct program program = {
		.other_reads = 0.4e-3,
		.calls = { [FN_MALLOC] = 10e-6, [FN_FREE] = 10e-6 },
	};

	(void)state;
	simulate(governor, &program, 20);
	assert_true(program.watched_ns[GROUP_READ] < 0.3 * program.now_ns);
	assert_true(program.watched_ns[GROUP_PAIR] > 0.95 * program.now_ns);
	assert_true(share_spent(&program) <= 0.0525);
	governor_free(governor);
}

/*
 * What every system call pays while some are watched is in the account: less is left for the pair.
 */
static void test_other_calls_are_charged(void **state)
{
	struct program without = { .calls = { [FN_MALLOC] = 2e-3, [FN_FREE] = 2e-3 } };
	struct program with = without;
	struct governor *governor = governor_new(0.05, false, &prices, false);

	(void)state;
	simulate(governor, &without, 20);
	governor_free(governor);
	governor = governor_new(0.05, false, &prices, false);
	with.syscalls = 0.2e-3; /* 1 % */
	simulate(governor, &with, 20);
	governor_free(governor);
	assert_true(share_spent(&with) <= 0.0525);
	assert_true(with.watched_ns[GROUP_PAIR] < 0.7 * without.watched_ns[GROUP_PAIR]);
	assert_true(with.windows > 3);
}

/* Without a witness of what is missed, or below the limit, read(2) stays watched. */
static void test_reads_stay(void **state)
{
	struct governor *governor = governor_new(0.05, false, &prices, false);
	struct program program = { .other_reads = 0.4e-3 }, cheap = { .other_reads = 0.2e-3 };

	(void)state;
	simulate(governor, &program, 20);
	assert_true(program.order.attached & 1U << GROUP_READ);
	assert_true(program.watched_ns[GROUP_READ] > 0.95 * program.now_ns);
	governor_free(governor);
	governor = governor_new(0.05, false, &prices, true);
	simulate(governor, &cheap, 20);
	assert_true(cheap.watched_ns[GROUP_READ] > 0.95 * cheap.now_ns);
	governor_free(governor);
}

/* One read in four hundred is of a file: not waste, whatever it costs. */
static void test_reads_of_files_stay(void **state)
{
	struct governor *governor = governor_new(0.05, false, &prices, true);
	struct program program = { .other_reads = 0.4e-3, .plain_reads = 1e-6 };

	(void)state;
	simulate(governor, &program, 20);
	assert_true(program.watched_ns[GROUP_READ] > 0.95 * program.now_ns);
	assert_true(program.unwatched_count < 1);
	governor_free(governor);
}

/* Files begin to be read while sockets' reads are left alone: they are watched again at once. */
static void test_reads_come_back(void **state)
{
	struct governor *governor = governor_new(0.05, false, &prices, true);
	struct program program = { .other_reads = 0.4e-3 };
	double watched_ns;

	(void)state;
	simulate(governor, &program, 10);
	assert_true(program.watched_ns[GROUP_READ] < 0.4 * program.now_ns);
	program.plain_reads = 0.2e-6; /* 200 a second: one in two thousand */
	watched_ns = program.watched_ns[GROUP_READ];
	simulate(governor, &program, 9);
	assert_true(program.watched_ns[GROUP_READ] - watched_ns > 0.95 * 9 * SECOND);
	assert_true(program.unwatched_count < 12);
	governor_free(governor);
}

/*
 * They begin while no system call is watched: that is over at once, and however the group stood
 * then, they stay watched, though they are one in two thousand.
 */
static void test_reads_come_back_with_all_calls(void **state)
{
	int step;

	(void)state;
	for (step = 0; step < 154; step++) {
		double before_s = 10 + 0.013 * step;
		struct governor *governor = governor_new(0.05, false, &prices, true);
		struct program program = { .other_reads = 0.4e-3 };
		double missed;

		simulate(governor, &program, before_s);
		program.unwatched = true;
		program.plain_reads = 0.2e-6;
		simulate(governor, &program, 0.06);
		program.unwatched = false;
		missed = program.unwatched_count;
		assert_true(missed > 8);
		simulate(governor, &program, 9);
		assert_true(program.unwatched_count - missed < 3);
		governor_free(governor);
	}
}

/* Faults alone cost more than the limit: nothing else may be added. */
static void test_faults_take_it_all(void **state)
{
	struct program program = {
		.calls = { [FN_MALLOC] = 2e-3, [FN_FREE] = 2e-3 },
		.faults = 500e-6,
	};
	struct governor *governor = governor_new(0.05, false, &prices, false);

	(void)state;
	simulate(governor, &program, 20);
	assert_true(program.watched_ns[GROUP_PAIR] < 0.2 * SECOND);
	/* But for a moment now and then, which shows when they have become few. */
	program.windows = 0;
	simulate(governor, &program, 20);
	assert_in_range(program.windows, 3, 4);
	program.calls[FN_MALLOC] = program.calls[FN_FREE] = 20e-9;
	simulate(governor, &program, 6);
	program.watched_ns[GROUP_PAIR] = 0;
	simulate(governor, &program, 10);
	assert_true(program.watched_ns[GROUP_PAIR] > 9.8 * SECOND);
	governor_free(governor);
}

/* Each ends a run: such faults cost three times what calibrated, and windows are rarer for it. */
static void test_faults_are_charged_as_timed(void **state)
{
	struct program cheap = {
		.calls = { [FN_MALLOC] = 2e-3, [FN_FREE] = 2e-3 },
		.faults = 60e-6,
	}, dear = cheap;
	struct governor *governors[] = {
		governor_new(0.1, false, &prices, false),
		governor_new(0.1, false, &prices, false),
	};

	(void)state;
	dear.fault_ns = 600;
	simulate(governors[0], &cheap, 40);
	simulate(governors[1], &dear, 40);
	assert_true(cheap.windows >= 20);
	assert_true(dear.windows < cheap.windows / 2);
	assert_true(share_spent(&dear) <= 0.1);
	governor_free(governors[0]);
	governor_free(governors[1]);
}

/* A look sees the time of 64 faults or of none: in the long run that is the same. */
static void test_lumps_are_not_charged_twice(void **state)
{
	struct calibration_result dear = prices;
	struct program even = {
		.calls = { [FN_MALLOC] = 5e-4, [FN_FREE] = 5e-4 },
		.faults = 5e-6, .fault_ns = 2000, .fault_lump = 1,
	}, lumps = even;
	struct governor *governors[2];

	(void)state;
	dear.fault = (struct price){ .hit_ns = 2000 };
	dear.fault_begin_ns = 2000 - FAULT_OUTSIDE_NS;
	lumps.fault_lump = 64;
	governors[0] = governor_new(0.05, false, &dear, false);
	governors[1] = governor_new(0.05, false, &dear, false);
	simulate(governors[0], &even, 200);
	simulate(governors[1], &lumps, 200);
	assert_true(even.windows >= 30);
	assert_true(fabs(1.0 * lumps.windows / even.windows - 1) <= 0.1);
	governor_free(governors[0]);
	governor_free(governors[1]);
}

/* Over the limit by faults alone: to take away the few calls would save nothing. */
static void test_few_calls_stay(void **state)
{
	struct program program = {
		.calls = { [FN_MALLOC] = 20e-9, [FN_FREE] = 20e-9 },
		.faults = 500e-6,
	};
	struct governor *governor = governor_new(0.05, true, &prices, false);

	(void)state;
	simulate(governor, &program, 20);
	assert_true(program.watched_ns[GROUP_PAIR] > 0.99 * program.now_ns);
	assert_int_equal(program.windows, 1);
	/* Looked at no more often than without a debt. */
	assert_true(program.looks < 20 * SECOND / (20 * MS) + 100);
	/* When they become many they go. */
	program.calls[FN_MALLOC] = program.calls[FN_FREE] = 2e-3;
	program.watched_ns[GROUP_PAIR] = 0;
	simulate(governor, &program, 20);
	assert_true(program.watched_ns[GROUP_PAIR] < 0.2 * SECOND);
	governor_free(governor);
}

/* A storm of processes, in debt: a window in five seconds, of 30 ms, and until it is looked at. */
static void assert_peeks(struct governor *governor, struct program *program)
{
	simulate(governor, program, 20);
	assert_in_range(program->windows, 3, 5);
	assert_true(program->watched_ns[GROUP_PAIR] <= program->windows * 55 * MS);
	assert_true(program->watched_ns[GROUP_CALLOC] <= program->windows * 55 * MS);
}

/* What calls cost in processes that nobody looks at is not seen: few that are seen are no excuse. */
static void test_few_calls_go_in_a_storm(void **state)
{
	struct program program = {
		.calls = { [FN_MALLOC] = 20e-9, [FN_CALLOC] = 20e-9, [FN_FREE] = 20e-9 },
		.faults = 500e-6,
		.starts = 400.0 / SECOND,
	};
	struct governor *governor = governor_new(0.05, false, &prices, false);

	(void)state;
	assert_peeks(governor, &program);
	assert_true(program.watched_ns[GROUP_PAIR] >= program.windows * 30 * MS);
	/* It is over: they stay, as they are few. */
	program.starts = 0;
	simulate(governor, &program, 6);
	program.watched_ns[GROUP_PAIR] = 0;
	simulate(governor, &program, 20);
	assert_true(program.watched_ns[GROUP_PAIR] > 0.99 * 20 * SECOND);
	governor_free(governor);
}

/* Where one group has to go, the others go with it: what they cost is no better seen. */
static void test_all_go_in_a_storm(void **state)
{
	struct program program = {
		.calls = { [FN_MALLOC] = 50e-6, [FN_FREE] = 50e-6, [FN_CALLOC] = 20e-9 },
		.faults = 500e-6,
		.starts = 400.0 / SECOND,
	};
	struct governor *governor = governor_new(0.05, false, &prices, false);

	(void)state;
	assert_peeks(governor, &program);
	governor_free(governor);
}

/* Nor need they go in one where there is no debt. */
static void test_few_calls_stay_in_a_storm(void **state)
{
	struct program program = {
		.calls = { [FN_MALLOC] = 20e-9, [FN_FREE] = 20e-9 },
		.starts = 400.0 / SECOND,
	};
	struct governor *governor = governor_new(0.05, false, &prices, false);

	(void)state;
	simulate(governor, &program, 20);
	assert_true(program.watched_ns[GROUP_PAIR] > 0.99 * program.now_ns);
	governor_free(governor);
}

/* Asleep: no time, no hits, and no harm. */
static void test_asleep(void **state)
{
	struct governor *governor = governor_new(0.05, false, &prices, false);
	struct governor_reading reading = { .now_ns = 1 };
	struct governor_order order = {};
	int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		order = governor_step(governor, &reading);
		assert_int_equal(order.counting, GROUPS_ALL);
		assert_true(order.next_ns > reading.now_ns);
		reading.now_ns = order.next_ns;
	}
	governor_free(governor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cheap_is_always_watched),
		cmocka_unit_test(test_windows_end_by_themselves),
		cmocka_unit_test(test_goes_on_after_a_stop),
		cmocka_unit_test(test_command_is_watched_from_its_start),
		cmocka_unit_test(test_faults_of_a_commands_start),
		cmocka_unit_test(test_two_million_pairs),
		cmocka_unit_test(test_dearer_than_calibrated),
		cmocka_unit_test(test_malloc_and_free_go_first),
		cmocka_unit_test(test_then_calloc),
		cmocka_unit_test(test_both_go_at_once),
		cmocka_unit_test(test_calloc_is_judged_outside_of_windows),
		cmocka_unit_test(test_reads_of_sockets_go_first),
		cmocka_unit_test(test_other_calls_are_charged),
		cmocka_unit_test(test_reads_stay),
		cmocka_unit_test(test_reads_of_files_stay),
		cmocka_unit_test(test_reads_come_back),
		cmocka_unit_test(test_reads_come_back_with_all_calls),
		cmocka_unit_test(test_only_what_costs),
		cmocka_unit_test(test_comes_back),
		cmocka_unit_test(test_faults_take_it_all),
		cmocka_unit_test(test_faults_are_charged_as_timed),
		cmocka_unit_test(test_lumps_are_not_charged_twice),
		cmocka_unit_test(test_few_calls_stay),
		cmocka_unit_test(test_few_calls_go_in_a_storm),
		cmocka_unit_test(test_all_go_in_a_storm),
		cmocka_unit_test(test_few_calls_stay_in_a_storm),
		cmocka_unit_test(test_asleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
