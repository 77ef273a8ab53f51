// SPDX-License-Identifier: GPL-2.0
/*
 * Sampling by bytes, as the kernel side draws: the distances, and how often the interval holds the
 * truth.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "events/sampling_table.h"
#include "ledger/sampled.h"

static uint32_t logs[SAMPLING_LOG_ENTRIES];

/* splitmix64, from fixed seeds: the same runs every time. */
static uint64_t seed;

static uint32_t draw(void)
{
	uint64_t z = (seed += 0x9e3779b97f4a7c15ULL);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (z ^ z >> 31) >> 32;
}

static void test_gaps_are_logarithms(void **state)
{
	static const uint32_t numbers[] = { 0,	 1,	2,	  3,	       5,
					    255, 65537, 1u << 31, 0xfffffffeu, 0xffffffffu };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]) + 100000; i++) {
		uint32_t number = i < 10 ? numbers[i] : draw();
		double u = (number ? number : 1) / 4294967296.0;
		double gap = sampling_gap(logs, 1 << 20, number);

		assert_true(fabs(gap - 1 + log(u) * (1 << 20)) <= 20 + 1e-5 * gap);
	}
	/* The largest mean overflows nothing. */
	assert_true(fabs(sampling_gap(logs, SAMPLING_MEAN_MAX, 1) / (double)SAMPLING_MEAN_MAX -
			 32 * M_LN2) < 1e-3);
}

struct sums {
	struct sampled_site site;
};

static void collect(void *context, const struct sampled_site *site)
{
	((struct sums *)context)->site = *site;
}

/* As view sample_estimate has it. */
static bool holds(double estimate, double variance, double weights, uint64_t chosen, double truth)
{
	double error = 1.96 * sqrt(variance) + 1.92 * weights / (chosen ? chosen : 1);

	return fabs(estimate - truth) <= error;
}

/* One run of a program: `calls` blocks of the given sizes; a part of them freed. */
static void run(uint64_t mean, int calls, const uint64_t *sizes, int size_count, int held[2])
{
	struct sampled *sampled = sampled_new(mean, 65536);
	double bytes = 0, live = 0;
	struct sums sums = {};
	int64_t left = sampling_gap(logs, mean, draw());
	int i;

	for (i = 0; i < calls; i++) {
		uint64_t size = sizes[i % size_count];
		struct memtoll_block block = {
			.tgid = 1,
			.fn = FN_MALLOC,
			.flags = BLOCK_SAMPLED,
			.addr = 4096ULL * (i + 1),
			.size = size,
			.stack_id = 7,
		};

		bytes += size;
		live += i % 3 ? 0 : size;
		left -= size;
		if (left > 0)
			continue;
		left = sampling_gap(logs, mean, draw());
		assert_true(sampled_block(sampled, &block));
		if (i % 3) {
			struct memtoll_block end = {
				.tgid = 1,
				.fn = FN_FREE,
				.old_addr = block.addr,
			};

			assert_true(sampled_block(sampled, &end));
			/* A second free of it is not ours. */
			end.old_addr = block.addr;
			assert_false(sampled_block(sampled, &end));
		}
	}
	sampled_drain(sampled, collect, &sums);
	held[0] += holds(sums.site.bytes, sums.site.bytes_variance, sums.site.bytes,
			 sums.site.chosen, bytes);
	held[1] += holds(sums.site.bytes - sums.site.freed_bytes,
			 sums.site.bytes_variance - sums.site.freed_bytes_variance, sums.site.bytes,
			 sums.site.chosen, live);
	sampled_free(sampled);
}

/* 95 of 100 intervals hold the truth: of 1000 at least 930, which chance would miss once in 300. */
static void test_intervals_hold(void **state)
{
	static const uint64_t same[] = { 256 }, mixed[] = { 24, 40, 100, 504, 2000, 33000 };
	static const struct {
		uint64_t mean;
		int calls;
		const uint64_t *sizes;
		int count;
	} programs[] = {
		{ 65536, 20011, same, 1 },
		{ 65536, 2003, mixed, 6 },
		{ 4096, 997, mixed, 6 },
		{ 524288, 10007, mixed, 6 },
	};
	size_t i;
	int k;

	(void)state;
	for (i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		int held[2] = {};

		for (k = 0; k < 1000; k++)
			run(programs[i].mean, programs[i].calls, programs[i].sizes,
			    programs[i].count, held);
		print_message("mean %lu: %d %d of 1000\n", (unsigned long)programs[i].mean, held[0],
			      held[1]);
		for (k = 0; k < 2; k++)
			assert_true(held[k] >= 930);
	}
}

static void test_realloc_and_exit(void **state)
{
	struct sampled *sampled = sampled_new(4096, 65536);
	struct memtoll_block made = { .tgid = 1,
				      .fn = FN_MALLOC,
				      .flags = BLOCK_SAMPLED,
				      .addr = 4096,
				      .size = 100,
				      .stack_id = 1 };
	struct memtoll_block grown = { .tgid = 1,
				       .fn = FN_REALLOC,
				       .old_addr = 4096,
				       .addr = 1 << 20,
				       .size = 100000,
				       .stack_id = 2 };
	struct memtoll_block failed = {
		.tgid = 1, .fn = FN_REALLOC, .old_addr = 4096, .size = 100000, .flags = BLOCK_FAILED
	};
	struct memtoll_block freed = { .tgid = 1, .fn = FN_FREE, .old_addr = 4096 };
	struct memtoll_block again;

	(void)state;
	assert_true(sampled_block(sampled, &made));
	/* A realloc that failed left the block: it still pairs with the next one. */
	assert_false(sampled_block(sampled, &failed));
	/* The new block is large: the ledger has it, but knows nothing of the old one. */
	assert_false(sampled_block(sampled, &grown));
	assert_int_equal(grown.old_addr, 0);
	again = freed;
	assert_false(sampled_block(sampled, &again));
	assert_true(sampled_block(sampled, &made));
	sampled_forget(sampled, 1);
	assert_false(sampled_block(sampled, &freed));
	sampled_free(sampled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gaps_are_logarithms),
		cmocka_unit_test(test_intervals_hold),
		cmocka_unit_test(test_realloc_and_exit),
	};

	sampling_fill(logs);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
