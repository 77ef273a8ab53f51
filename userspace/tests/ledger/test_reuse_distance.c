// SPDX-License-Identifier: GPL-2.0
/*
 * Distances between uses of a block against a plain stack of them, and samples against the whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib.h>
#include <math.h>
#include <string.h>

#include "ledger/reuse_distance.h"

#define NEVER UINT64_MAX

/* Mattson's stack in its textbook form: a list, the most recently used block on top. */
struct stack {
	GArray *blocks;
};

static uint64_t stack_use(struct stack *stack, uint64_t block)
{
	uint64_t *blocks = (uint64_t *)stack->blocks->data;
	guint i, count = stack->blocks->len;

	for (i = 0; i < count; i++)
		if (blocks[count - 1 - i] == block) {
			g_array_remove_index(stack->blocks, count - 1 - i);
			g_array_append_val(stack->blocks, block);
			return i;
		}
	g_array_append_val(stack->blocks, block);
	return NEVER;
}

struct histogram {
	uint64_t low[1024];
	uint64_t high[1024];
	double uses[1024];
	size_t count;
};

static void on_bucket(void *context, uint64_t low, uint64_t high, double uses)
{
	struct histogram *histogram = context;

	assert_in_range(histogram->count, 0, 1023);
	histogram->low[histogram->count] = low;
	histogram->high[histogram->count] = high;
	histogram->uses[histogram->count++] = uses;
}

static uint64_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

/* Three orders: a loop over all, evenly at random, and most uses on a few. */
enum order { LOOP, EVEN, SKEWED };

static uint64_t next_block(enum order order, uint64_t i, uint64_t blocks, uint64_t *state)
{
	uint64_t a, b;

	switch (order) {
	case LOOP:
		return i % blocks;
	case EVEN:
		return draw(state) % blocks;
	default:
		a = draw(state) % blocks + 1;
		b = draw(state) % a + 1;
		return draw(state) % b;
	}
}

static void check_exact(enum order order, uint64_t blocks, uint64_t uses)
{
	g_autofree uint64_t *truth = g_new0(uint64_t, blocks);
	struct stack stack = { g_array_new(FALSE, FALSE, sizeof(uint64_t)) };
	struct reuse *reuse = reuse_new(blocks);
	struct histogram histogram = {};
	struct reuse_summary summary;
	uint64_t state = 7, first = 0, distance, d, sum, furthest = 0;
	size_t i;

	for (i = 0; i < uses; i++) {
		uint64_t block = next_block(order, i, blocks, &state);

		reuse_use(reuse, block << 40 | 3, true);
		distance = stack_use(&stack, block);
		first += distance == NEVER;
		if (distance == NEVER)
			continue;
		truth[distance]++;
		furthest = MAX(furthest, distance);
	}
	reuse_each(reuse, on_bucket, &histogram);
	for (i = 0, d = 0; i < histogram.count; i++) {
		assert_in_range(histogram.low[i], d, UINT64_MAX);
		/* Fine enough: no bucket is wider than a sixteenth of where it begins. */
		assert_true(histogram.high[i] - histogram.low[i] <=
			    MAX(1, histogram.low[i] / REUSE_STEPS));
		for (; d < histogram.low[i]; d++)
			assert_int_equal(truth[d], 0);
		for (sum = 0; d < histogram.high[i] && d < blocks; d++)
			sum += truth[d];
		assert_true(histogram.uses[i] == sum);
	}
	for (; d < blocks; d++)
		assert_int_equal(truth[d], 0);
	reuse_sum_up(reuse, &summary);
	assert_int_equal(summary.uses, uses);
	assert_true(summary.first == first && summary.different == stack.blocks->len);
	assert_true(summary.rate == 1 && summary.error == 0 && summary.max_distance == furthest);
	reuse_free(reuse);
	g_array_free(stack.blocks, TRUE);
}

static void exact_where_all_fits(void **state)
{
	(void)state;
	check_exact(LOOP, 1, 5);
	check_exact(LOOP, 1009, 5003);
	check_exact(EVEN, 997, 20011);
	check_exact(SKEWED, 3001, 20011);
}

/* Share of the uses that a cache of so many blocks misses. */
static double miss_ratio(const struct reuse *reuse, uint64_t cache)
{
	struct histogram histogram = {};
	struct reuse_summary summary;
	double hits = 0;
	size_t i;

	reuse_each(reuse, on_bucket, &histogram);
	reuse_sum_up(reuse, &summary);
	for (i = 0; i < histogram.count && histogram.high[i] <= cache; i++)
		hits += histogram.uses[i];
	/* A bucket that is cut: as if its uses were spread evenly. */
	if (i < histogram.count && histogram.low[i] < cache)
		hits += histogram.uses[i] * (cache - histogram.low[i]) /
			(histogram.high[i] - histogram.low[i]);
	return 1 - hits / summary.uses;
}

/* Samples against the whole, which the test above has proved. */
static void check_sampled(enum order order, uint64_t blocks, uint64_t uses, uint32_t max_blocks)
{
	struct reuse *whole = reuse_new(blocks), *sample = reuse_new(max_blocks);
	struct reuse_summary truth, summary;
	uint64_t state = 7, i;

	for (i = 0; i < uses; i++) {
		uint64_t block = next_block(order, i, blocks, &state);

		reuse_use(whole, block, true);
		reuse_use(sample, block, true);
		assert_true(reuse_followed(sample) <= max_blocks);
	}
	reuse_sum_up(whole, &truth);
	reuse_sum_up(sample, &summary);
	assert_true(truth.rate == 1 && summary.rate < 1);
	assert_int_equal(summary.uses, truth.uses);
	assert_true(reuse_followed(sample) > max_blocks / 3);
	/* Twice the bound: one run in 10,000 may be further off. */
	assert_true(summary.error > 0 && summary.error < 0.1);
	assert_true(fabs(summary.different - truth.different) <=
		    2 * summary.error * truth.different);
	for (i = blocks / 10; i < blocks; i += blocks / 10)
		assert_true(fabs(miss_ratio(sample, i) - miss_ratio(whole, i)) < 0.05);
	reuse_free(whole);
	reuse_free(sample);
}

static void samples_tell_the_whole(void **state)
{
	(void)state;
	check_sampled(LOOP, 100003, 250007, 8192);
	check_sampled(EVEN, 100003, 500009, 8192);
	check_sampled(SKEWED, 300007, 500009, 8192);
}

/* A sweep over more than can be followed: nothing is used again, whatever the rate. */
static void a_sweep_is_no_reuse(void **state)
{
	struct reuse *reuse = reuse_new(1024);
	struct histogram histogram = {};
	struct reuse_summary summary;
	uint64_t i;

	(void)state;
	for (i = 0; i < 1000003; i++)
		reuse_use(reuse, i, true);
	reuse_sum_up(reuse, &summary);
	assert_true(summary.different == 1000003 && summary.first == 1000003);
	assert_true(summary.max_distance == 0 && summary.rate < 0.01 && summary.error > 0);
	reuse_each(reuse, on_bucket, &histogram);
	assert_int_equal(histogram.count, 0);
	reuse_free(reuse);
}

/* First touches, uncounted, then each comes back once, in order: all at the full distance. */
static void uncounted_uses_only_move(void **state)
{
	struct reuse *reuse = reuse_new(1024);
	struct histogram histogram = {};
	struct reuse_summary summary;
	uint64_t i;

	(void)state;
	for (i = 0; i < 503; i++)
		reuse_use(reuse, i, false);
	for (i = 0; i < 503; i++)
		reuse_use(reuse, i, true);
	reuse_sum_up(reuse, &summary);
	assert_int_equal(summary.uses, 503);
	assert_true(summary.first == 0 && summary.different == 503 && summary.max_distance == 502);
	reuse_each(reuse, on_bucket, &histogram);
	assert_int_equal(histogram.count, 1);
	assert_true(histogram.low[0] <= 502 && 502 < histogram.high[0] && histogram.uses[0] == 503);
	reuse_free(reuse);
}

static void shrinking_keeps_the_shape(void **state)
{
	struct reuse *reuse = reuse_new(1 << 16);
	struct reuse_summary before, after;
	uint64_t i;

	(void)state;
	for (i = 0; i < 3 * 30011; i++)
		reuse_use(reuse, i % 30011, true);
	reuse_sum_up(reuse, &before);
	for (i = 0; i < 4; i++)
		reuse_shrink(reuse);
	reuse_sum_up(reuse, &after);
	assert_true(before.rate == 1 && after.rate < 1);
	assert_in_range(reuse_followed(reuse), 1, 1 << 12);
	assert_true(fabs(after.different / before.different - 1) < 2 * after.error);
	assert_true(fabs(miss_ratio(reuse, 20000) - 1) < 0.1);
	assert_true(fabs(miss_ratio(reuse, 33000) - 1.0 / 3) < 0.1);
	for (i = 0; i < 20; i++)
		reuse_shrink(reuse);
	assert_in_range(reuse_followed(reuse), 0, 2);
	reuse_use(reuse, 1, true);
	reuse_free(reuse);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_where_all_fits),
		cmocka_unit_test(samples_tell_the_whole),
		cmocka_unit_test(a_sweep_is_no_reuse),
		cmocka_unit_test(uncounted_uses_only_move),
		cmocka_unit_test(shrinking_keeps_the_shape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
