// SPDX-License-Identifier: GPL-2.0
#include "compare/compare.h"

#include <math.h>
#include <string.h>

/*
 * Student's t, two-sided, by degrees of freedom; between them linear in 1/df, which is right within
 * 0.001 (95 %) and 0.01 (99 %). Two quantiles need no library of statistics.
 */
static const struct {
	double freedom, t95, t99;
} students[] = {
	{ 1, 12.7062, 63.6567 },      { 2, 4.3027, 9.9248 },  { 3, 3.1824, 5.8409 },
	{ 4, 2.7764, 4.6041 },	      { 5, 2.5706, 4.0321 },  { 6, 2.4469, 3.7074 },
	{ 7, 2.3646, 3.4995 },	      { 8, 2.3060, 3.3554 },  { 9, 2.2622, 3.2498 },
	{ 10, 2.2281, 3.1693 },	      { 12, 2.1788, 3.0545 }, { 15, 2.1314, 2.9467 },
	{ 20, 2.0860, 2.8453 },	      { 30, 2.0423, 2.7500 }, { 60, 2.0003, 2.6603 },
	{ INFINITY, 1.9600, 2.5758 },
};

static double student(double freedom, bool sure)
{
	size_t i = 0, last = G_N_ELEMENTS(students) - 1;
	double part, low, high;

	freedom = MAX(freedom, 1);
	while (i < last - 1 && students[i + 1].freedom < freedom)
		i++;
	/* 1/df falls from low to high */
	part = (1 / students[i].freedom - 1 / freedom) /
	       (1 / students[i].freedom - 1 / students[i + 1].freedom);
	low = sure ? students[i].t99 : students[i].t95;
	high = sure ? students[i + 1].t99 : students[i + 1].t95;
	return low + (high - low) * part;
}

static void figure_free(void *data)
{
	struct figure *figure = data;
	size_t side;

	for (side = 0; side < SIDES; side++) {
		g_array_unref(figure->values[side]);
		g_array_unref(figure->blocks[side]);
	}
	g_free(figure->name);
	g_free(figure->family);
	g_free(figure);
}

struct comparison *comparison_new(void)
{
	struct comparison *comparison = g_new0(struct comparison, 1);
	size_t side;

	comparison->figures = g_ptr_array_new_with_free_func(figure_free);
	for (side = 0; side < SIDES; side++)
		comparison->block_s[side] = g_array_new(FALSE, FALSE, sizeof(double));
	return comparison;
}

void comparison_free(struct comparison *comparison)
{
	size_t side;

	if (!comparison)
		return;
	g_ptr_array_unref(comparison->figures);
	for (side = 0; side < SIDES; side++)
		g_array_unref(comparison->block_s[side]);
	g_free(comparison);
}

struct figure *comparison_find(const struct comparison *comparison, enum compare_kind kind,
			       const char *name)
{
	guint i;

	for (i = 0; i < comparison->figures->len; i++) {
		struct figure *figure = g_ptr_array_index(comparison->figures, i);

		if (figure->kind == kind && !strcmp(figure->name, name))
			return figure;
	}
	return NULL;
}

struct figure *comparison_figure(struct comparison *comparison, enum compare_kind kind,
				 const char *name, const char *family, enum compare_unit unit)
{
	struct figure *figure = comparison_find(comparison, kind, name);
	size_t side;

	if (figure)
		return figure;
	figure = g_new0(struct figure, 1);
	figure->kind = kind;
	figure->unit = unit;
	figure->name = g_strdup(name);
	figure->family = g_strdup(family);
	for (side = 0; side < SIDES; side++) {
		figure->values[side] = g_array_new(FALSE, FALSE, sizeof(double));
		figure->blocks[side] = g_array_new(FALSE, FALSE, sizeof(double));
	}
	g_ptr_array_add(comparison->figures, figure);
	return figure;
}

static double at(const GArray *array, guint i)
{
	return g_array_index(array, double, i);
}

static double sum(const GArray *array)
{
	double total = 0;
	guint i;

	for (i = 0; i < array->len; i++)
		total += at(array, i);
	return total;
}

/* The spread of several runs. */
static struct estimate of_runs(const GArray *values)
{
	double n = values->len, mean = sum(values) / n, squares = 0;
	guint i;

	for (i = 0; i < values->len; i++)
		squares += (at(values, i) - mean) * (at(values, i) - mean);
	return (struct estimate){ mean, squares / (n - 1) / n, n - 1 };
}

/* How the blocks of one run vary against its rate, for the value of the whole run per divisor. */
static struct estimate of_blocks(double value, const GArray *blocks, const GArray *seconds,
				 double divisor)
{
	double n = seconds->len, all_s = sum(seconds), squares = 0, whole = 0, rate, scale;
	struct estimate estimate = { value, NAN, 0 };
	guint i;

	if (seconds->len < 2 || blocks->len != seconds->len || all_s <= 0)
		return estimate;
	rate = sum(blocks) / all_s;
	scale = all_s / divisor;
	for (i = 0; i < seconds->len; i++) {
		double rest = at(blocks, i) - rate * at(seconds, i);

		squares += rest * rest;
		whole += at(blocks, i) * at(blocks, i);
	}
	if (squares <= 1e-12 * whole) /* what rounding leaves of equal numbers is no variance */
		squares = 0;
	estimate.variance = squares * n / (n - 1) / all_s / all_s * scale * scale;
	estimate.freedom = n - 1;
	return estimate;
}

/* Welch's interval, the degrees of freedom after Satterthwaite; of a difference of means. */
static double welch(const struct estimate *a, const struct estimate *b, bool sure)
{
	double both = a->variance + b->variance, freedom;

	if (!(a->freedom > 0 && b->freedom > 0))
		return NAN;
	freedom = both * both /
		  (a->variance * a->variance / a->freedom + b->variance * b->variance / b->freedom);
	return student(isfinite(freedom) ? freedom : INFINITY, sure) * sqrt(both);
}

/*
 * The mean of the logarithms and its variance; of one run, whose values are blocks: to first order.
 */
static struct estimate logarithm(const struct estimate *estimate, const GArray *values)
{
	struct estimate result = { NAN, NAN, 0 };
	g_autoptr(GArray) logs = g_array_new(FALSE, FALSE, sizeof(double));
	guint i;

	if (!(estimate->mean > 0))
		return result;
	if (values->len < 2)
		return (struct estimate){ log(estimate->mean),
					  estimate->variance / (estimate->mean * estimate->mean),
					  estimate->freedom };
	for (i = 0; i < values->len; i++) {
		double value = log(at(values, i));

		if (!isfinite(value))
			return result;
		g_array_append_val(logs, value);
	}
	return of_runs(logs);
}

/*
 * Of runs, both sides' spread together: the logarithms vary alike, and three runs of each then have
 * four degrees of freedom.
 */
static struct difference divide(const struct figure *figure)
{
	struct estimate a = logarithm(&figure->estimate[WITHOUT], figure->values[WITHOUT]);
	struct estimate b = logarithm(&figure->estimate[WITH], figure->values[WITH]);
	double value = figure->estimate[WITH].mean / figure->estimate[WITHOUT].mean, half;

	if (figure->values[WITHOUT]->len > 1 && figure->values[WITH]->len > 1)
		half = student(a.freedom + b.freedom, true) * sqrt(a.variance + b.variance);
	else
		half = welch(&a, &b, true);
	return (struct difference){ value, exp(b.mean - a.mean - half),
				    exp(b.mean - a.mean + half) };
}

struct difference figure_bounds(const struct figure *figure, enum compare_side side)
{
	struct estimate logs = logarithm(&figure->estimate[side], figure->values[side]);
	double half = logs.freedom > 0 ? student(logs.freedom, true) * sqrt(logs.variance) : NAN;

	return (struct difference){ figure->estimate[side].mean, exp(logs.mean - half),
				    exp(logs.mean + half) };
}

void comparison_finish(struct comparison *comparison, const double divisor[SIDES])
{
	double half;
	size_t side;
	guint i;

	for (i = 0; i < comparison->figures->len; i++) {
		struct figure *figure = g_ptr_array_index(comparison->figures, i);

		for (side = 0; side < SIDES; side++) {
			const GArray *values = figure->values[side];
			struct estimate *estimate = &figure->estimate[side];

			if (!values->len)
				*estimate = (struct estimate){ NAN, NAN, 0 };
			else if (values->len > 1)
				*estimate = of_runs(values);
			else
				*estimate = of_blocks(at(values, 0), figure->blocks[side],
						      comparison->block_s[side], divisor[side]);
		}
		figure->difference.value =
			figure->estimate[WITH].mean - figure->estimate[WITHOUT].mean;
		half = welch(&figure->estimate[WITHOUT], &figure->estimate[WITH], false);
		figure->difference.low = figure->difference.value - half;
		figure->difference.high = figure->difference.value + half;
		figure->ratio = divide(figure);
	}
}

bool ratio_proved(const struct difference *ratio)
{
	return ratio->low > 1 || ratio->high < 1;
}

bool difference_proved(const struct difference *difference)
{
	return difference->low > 0 || difference->high < 0;
}
