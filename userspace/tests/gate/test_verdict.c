// SPDX-License-Identifier: GPL-2.0
/* test_verdict.c: counts of runs, held against bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glib.h>
#include <math.h>
#include <string.h>

#include "gate/verdict.h"

static struct bound a_bound = { .name = "alloc.calls", .of = "alloc", .metric = GATE_COUNT };
static struct bounds budget;

static void free_counts(void *counts)
{
	counts_free(counts);
}

/* One bound: value <= factor * baseline + more. */
static int setup(void **state)
{
	(void)state;
	a_bound.factor = 0;
	a_bound.more = 100;
	a_bound.metric = GATE_COUNT;
	budget.list = g_ptr_array_new();
	g_ptr_array_add(budget.list, &a_bound);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	g_ptr_array_unref(budget.list);
	return 0;
}

static GPtrArray *runs_new(void)
{
	return g_ptr_array_new_with_free_func(free_counts);
}

static void site_free(void *data)
{
	struct count_site *site = data;

	g_free(site->site);
	g_free(site->call);
	g_free(site);
}

static void add_site(struct counts *counts, const char *name, const char *call, double value)
{
	struct count_site *site = g_new0(struct count_site, 1);

	site->site = g_strdup(name);
	site->call = g_strdup(call);
	site->value = value;
	g_hash_table_insert(counts->of->sites, site->site, site);
	counts->of->value += value;
}

/* A run whose one site has so many; more is added by add_site(). */
static struct counts *add_run(GPtrArray *runs, double value, double lost)
{
	struct counts *counts = g_new0(struct counts, 1);

	counts->length = 1;
	counts->of = g_new0(struct count, 1);
	counts->of->lost = lost;
	counts->of->reason = lost ? g_strdup("lost") : NULL;
	counts->of->sites = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, site_free);
	if (value)
		add_site(counts, "main", "malloc", value);
	g_ptr_array_add(runs, counts);
	return counts;
}

static void absolute(void **state)
{
	static const struct {
		double value, lost;
		enum gate_result result;
	} cases[] = {
		{ 0, 0, GATE_WITHIN },	      { 100, 0, GATE_WITHIN },	      { 101, 0, GATE_OVER },
		{ 95, 5, GATE_WITHIN },	      { 95, 6, GATE_UNSURE },	      { 101, 6, GATE_OVER },
		{ 5, INFINITY, GATE_UNSURE }, { 500, INFINITY, GATE_UNSURE },
	};
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(cases); i++) {
		GPtrArray *before = runs_new(), *now = runs_new();
		struct verdict *verdict;
		const struct finding *finding;

		add_run(now, cases[i].value, cases[i].lost);
		verdict = verdict_new(&budget, before, now, NULL);
		finding = g_ptr_array_index(verdict->findings, 0);
		assert_int_equal(finding->result, cases[i].result);
		assert_int_equal(verdict->over, cases[i].result == GATE_OVER);
		assert_int_equal(verdict->unsure, cases[i].result == GATE_UNSURE);
		assert_true(isnan(finding->before));
		assert_true(finding->limit == 100);
		if (cases[i].result == GATE_UNSURE)
			assert_string_equal(finding->reason, "lost");
		else
			assert_null(finding->reason);
		verdict_free(verdict);
		g_ptr_array_unref(before);
		g_ptr_array_unref(now);
	}
}

/* What varies by itself is over in some runs; what grew is in all. */
static void over_in_every_run(void **state)
{
	static const struct {
		double values[3];
		enum gate_result result;
	} cases[] = {
		{ { 101, 102, 103 }, GATE_OVER },
		{ { 101, 99, 103 }, GATE_WITHIN },
		{ { 103, 101, 100 }, GATE_WITHIN },
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(cases); i++) {
		GPtrArray *before = runs_new(), *now = runs_new();
		const struct finding *finding;
		struct verdict *verdict;

		for (k = 0; k < 3; k++)
			add_run(now, cases[i].values[k], 0);
		verdict = verdict_new(&budget, before, now, NULL);
		finding = g_ptr_array_index(verdict->findings, 0);
		assert_int_equal(finding->result, cases[i].result);
		assert_true(finding->high == 103);
		assert_true(finding->now == finding->low);
		verdict_free(verdict);
		g_ptr_array_unref(before);
		g_ptr_array_unref(now);
	}
}

/* The most of the baseline's runs counts, and what they may have lost is not what grew. */
static void against_a_baseline(void **state)
{
	static const struct {
		double factor, more, before[2], lost, now;
		enum gate_result result;
	} cases[] = {
		{ 1, 0, { 90, 100 }, 0, 100, GATE_WITHIN },
		{ 1, 0, { 90, 100 }, 0, 101, GATE_OVER },
		{ 1.15, 0, { 100, 100 }, 0, 115, GATE_WITHIN },
		{ 1.15, 0, { 100, 100 }, 0, 116, GATE_OVER },
		{ 1.05, 4, { 3, 2 }, 0, 7, GATE_WITHIN },
		{ 1.05, 4, { 3, 2 }, 0, 8, GATE_OVER },
		{ 1, 0, { 100, 90 }, 10, 105, GATE_UNSURE },
		{ 1, 0, { 100, 90 }, 10, 111, GATE_OVER },
		{ 1, 0, { 100, 90 }, INFINITY, 1000, GATE_UNSURE },
		{ 1, 0, { 100, 90 }, INFINITY, 50, GATE_UNSURE },
		{ 0, 100, { 100, 90 }, INFINITY, 50, GATE_WITHIN },
		{ 1, 0, { 0, 0 }, 0, 1, GATE_OVER },
	};
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(cases); i++) {
		GPtrArray *before = runs_new(), *now = runs_new();
		struct verdict *verdict;

		a_bound.factor = cases[i].factor;
		a_bound.more = cases[i].more;
		add_run(before, cases[i].before[0], cases[i].lost);
		add_run(before, cases[i].before[1], 0);
		add_run(now, cases[i].now, 0);
		verdict = verdict_new(&budget, before, now, NULL);
		if (((struct finding *)g_ptr_array_index(verdict->findings, 0))->result !=
		    cases[i].result)
			fail_msg("case %zu", i);
		verdict_free(verdict);
		g_ptr_array_unref(before);
		g_ptr_array_unref(now);
	}
}

/* A single run tells nothing of what threads, or the kernel, do otherwise in the next one. */
static void a_single_baseline_may_vary_as_well(void **state)
{
	static const struct {
		double factor, more, now[3], limit;
		guint before;
		enum gate_result result;
	} cases[] = {
		{ 1, 0, { 103, 101, 102 }, 102, 1, GATE_WITHIN },
		{ 1, 0, { 105, 103, 104 }, 102, 1, GATE_OVER },
		{ 1, 0, { 101, 101, 101 }, 100, 1, GATE_OVER },
		{ 1, 4, { 107, 107, 105 }, 106, 1, GATE_WITHIN },
		/* three do */
		{ 1, 0, { 103, 101, 102 }, 100, 3, GATE_OVER },
		/* and an amount is an amount */
		{ 0, 100, { 103, 101, 102 }, 100, 1, GATE_OVER },
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(cases); i++) {
		GPtrArray *before = runs_new(), *now = runs_new();
		const struct finding *finding;
		struct verdict *verdict;

		a_bound.factor = cases[i].factor;
		a_bound.more = cases[i].more;
		for (k = 0; k < cases[i].before; k++)
			add_run(before, 100, 0);
		for (k = 0; k < G_N_ELEMENTS(cases[i].now); k++)
			add_run(now, cases[i].now[k], 0);
		verdict = verdict_new(&budget, before, now, NULL);
		finding = g_ptr_array_index(verdict->findings, 0);
		if (finding->result != cases[i].result || finding->limit != cases[i].limit)
			fail_msg("case %zu: limit %g", i, finding->limit);
		verdict_free(verdict);
		g_ptr_array_unref(before);
		g_ptr_array_unref(now);
	}
}

/* What grew most stands first, also where it is not the largest; what gives back is not why. */
static void sites_by_growth(void **state)
{
	GPtrArray *before = runs_new(), *now = runs_new();
	struct counts *counts = add_run(before, 500, 0);
	static const char *const order[] = { "new", "grew", "grew free", "main", "gone" };
	const struct finding *finding;
	struct verdict *verdict;
	size_t i;

	(void)state;
	a_bound.factor = 1;
	a_bound.more = 0;
	add_site(counts, "grew", "malloc", 10);
	add_site(counts, "grew free", "free", 10);
	add_site(counts, "gone", "malloc", 5);
	counts = add_run(now, 501, 0);
	add_site(counts, "grew free", "free", 20);
	add_site(counts, "grew", "malloc", 20);
	add_site(counts, "new", "malloc", 11);
	verdict = verdict_new(&budget, before, now, NULL);
	finding = g_ptr_array_index(verdict->findings, 0);
	assert_int_equal(finding->result, GATE_OVER);
	assert_int_equal(finding->sites->len, G_N_ELEMENTS(order));
	for (i = 0; i < G_N_ELEMENTS(order); i++) {
		const struct site_change *change = g_ptr_array_index(finding->sites, i);

		assert_string_equal(change->site->site, order[i]);
	}
	verdict_free(verdict);
	g_ptr_array_unref(before);
	g_ptr_array_unref(now);
}

/* Nothing was captured: that is neither within nor over. */
static void what_is_missing(void **state)
{
	GPtrArray *before = runs_new(), *now = runs_new();
	struct verdict *verdict;

	(void)state;
	add_run(now, 0, 0)->of->missing = g_strdup("was not traced");
	verdict = verdict_new(&budget, before, now, NULL);
	assert_int_equal(verdict->missing, 1);
	assert_int_equal(verdict->over + verdict->unsure, 0);
	verdict_free(verdict);
	g_ptr_array_unref(before);
	g_ptr_array_unref(now);
}

/* Proved by the spread of the runs, and not by their mean. */
static void times_by_their_bounds(void **state)
{
	static const struct {
		double factor, more, with[3];
		enum gate_result result;
	} cases[] = {
		/* Mean 1, its 99 % bounds 0.944 to 1.059; of the ratio 1.926 to 2.076. */
		{ 0, 0.9, { 0.99, 1.0, 1.01 }, GATE_OVER },
		{ 0, 0.95, { 0.99, 1.0, 1.01 }, GATE_WITHIN },
		{ 1.92, 0, { 0.99, 1.0, 1.01 }, GATE_OVER },
		{ 1.93, 0, { 0.99, 1.0, 1.01 }, GATE_WITHIN },
		{ 1.2, 0, { 0.3, 1.0, 1.7 }, GATE_WITHIN },
		/* No interval: one run took no time. */
		{ 0, 0.9, { 0, 1.0, 2.0 }, GATE_UNSURE },
		{ 0, 1.1, { 0, 1.0, 2.0 }, GATE_WITHIN },
		{ 1.2, 0, { 0, 1.0, 2.0 }, GATE_UNSURE },
		{ 1.2, 0, { 0, 0, 0 }, GATE_WITHIN },
	};
	static const double without[] = { 0.495, 0.5, 0.505 }, divisor[SIDES] = { 1, 1 };
	size_t i;

	(void)state;
	a_bound.metric = GATE_TIME;
	for (i = 0; i < G_N_ELEMENTS(cases); i++) {
		GPtrArray *none = runs_new();
		struct comparison *times = comparison_new();
		struct figure *figure = comparison_figure(times, COMPARE_TOLL, "alloc", "allocator",
							  COMPARE_SECONDS);
		struct verdict *verdict;

		a_bound.factor = cases[i].factor;
		a_bound.more = cases[i].more;
		g_array_append_vals(figure->values[WITHOUT], without, 3);
		g_array_append_vals(figure->values[WITH], cases[i].with, 3);
		comparison_finish(times, divisor);
		verdict = verdict_new(&budget, none, none, times);
		if (((struct finding *)g_ptr_array_index(verdict->findings, 0))->result !=
		    cases[i].result)
			fail_msg("case %zu", i);
		verdict_free(verdict);
		comparison_free(times);
		g_ptr_array_unref(none);
	}
}

/* Where too much was lost, a time that is not over is not within either. */
static void times_that_lack(void **state)
{
	static const double with[] = { 0.99, 1.0, 1.01 }, divisor[SIDES] = { 1, 1 };
	GPtrArray *none = runs_new();
	struct comparison *times = comparison_new();
	struct figure *figure =
		comparison_figure(times, COMPARE_TOLL, "alloc", "allocator", COMPARE_SECONDS);
	const struct finding *finding;
	struct verdict *verdict;

	(void)state;
	a_bound.metric = GATE_TIME;
	a_bound.factor = 0;
	a_bound.more = 2;
	g_array_append_vals(figure->values[WITH], with, 3);
	comparison_finish(times, divisor);
	verdict = verdict_new(&budget, none, none, times);
	finding = g_ptr_array_index(verdict->findings, 0);
	assert_int_equal(finding->result, GATE_WITHIN);
	verdict_doubt_times(verdict, "calls_full 9");
	assert_int_equal(finding->result, GATE_UNSURE);
	assert_string_equal(finding->reason, "calls_full 9");
	assert_int_equal(verdict->unsure, 1);
	verdict_free(verdict);
	comparison_free(times);
	g_ptr_array_unref(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(absolute, setup, teardown),
		cmocka_unit_test_setup_teardown(over_in_every_run, setup, teardown),
		cmocka_unit_test_setup_teardown(against_a_baseline, setup, teardown),
		cmocka_unit_test_setup_teardown(a_single_baseline_may_vary_as_well, setup,
						teardown),
		cmocka_unit_test_setup_teardown(sites_by_growth, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(times_by_their_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(times_that_lack, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
