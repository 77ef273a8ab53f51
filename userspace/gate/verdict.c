// SPDX-License-Identifier: GPL-2.0
#include "gate/verdict.h"

#include <math.h>
#include <string.h>

static const struct count *count_at(const GPtrArray *runs, guint run, guint bound)
{
	return &((struct counts *)g_ptr_array_index(runs, run))->of[bound];
}

static void finding_free(void *data)
{
	struct finding *finding = data;

	g_clear_pointer(&finding->sites, g_ptr_array_unref);
	g_free(finding);
}

void verdict_free(struct verdict *verdict)
{
	if (!verdict)
		return;
	g_ptr_array_unref(verdict->findings);
	g_free(verdict);
}

/* ---- sites ---- */

static double site_value(const struct count *count, const char *site)
{
	const struct count_site *found = g_hash_table_lookup(count->sites, site);

	return found ? found->value : 0;
}

static double growth(const struct site_change *change)
{
	return change->now - (isnan(change->before) ? 0 : change->before);
}

/* What gives back is called as often as what takes, and is not why. */
static bool gives_back(const struct count_site *site)
{
	return !strcmp(site->call, "free") || !strcmp(site->call, "munmap");
}

static int by_growth(const void *one, const void *two)
{
	const struct site_change *a = *(struct site_change *const *)one;
	const struct site_change *b = *(struct site_change *const *)two;
	double x = growth(a), y = growth(b);

	if (x != y)
		return x < y ? 1 : -1;
	if (gives_back(a->site) != gives_back(b->site))
		return gives_back(a->site) ? 1 : -1;
	return strcmp(a->site->site, b->site->site);
}

static void add_change(GPtrArray *sites, const struct count_site *site, double before, double now)
{
	struct site_change *change = g_new(struct site_change, 1);

	*change = (struct site_change){ site, before, now };
	g_ptr_array_add(sites, change);
}

/* Of a run, against the most that each had in the baseline's runs. */
static GPtrArray *compare_sites(const GPtrArray *before, const struct count *now, guint bound)
{
	GPtrArray *sites = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(GHashTable) gone = g_hash_table_new(g_str_hash, g_str_equal);
	struct count_site *site;
	GHashTableIter all;
	guint i;

	g_hash_table_iter_init(&all, now->sites);
	while (g_hash_table_iter_next(&all, NULL, (void **)&site)) {
		double most = before->len ? 0 : NAN;

		for (i = 0; i < before->len; i++)
			most = MAX(most, site_value(count_at(before, i, bound), site->site));
		add_change(sites, site, most, site->value);
	}
	for (i = 0; i < before->len; i++) {
		g_hash_table_iter_init(&all, count_at(before, i, bound)->sites);
		while (g_hash_table_iter_next(&all, NULL, (void **)&site))
			if (!g_hash_table_contains(now->sites, site->site) &&
			    g_hash_table_add(gone, site->site))
				add_change(sites, site, site->value, 0);
	}
	g_ptr_array_sort(sites, by_growth);
	return sites;
}

/* ---- counts ---- */

/* In whole events and bytes: 1.15 times 100 is 115, whatever a double makes of it. */
static double limit_of(const struct bound *bound, double baseline)
{
	if (!bound->factor)
		return bound->more;
	return floor(bound->factor * baseline * (1 + 1e-12)) + bound->more;
}

static enum gate_result judge_run(const struct count *now, double limit, double surely_over)
{
	if (isfinite(now->lost) && now->value > surely_over)
		return GATE_OVER;
	/* A baseline of which nobody knows what it counts bounds nothing. */
	if (!isfinite(surely_over))
		return GATE_UNSURE;
	return now->value + now->lost <= limit ? GATE_WITHIN : GATE_UNSURE;
}

/* Of a run, or of the baseline. */
static const char *find_missing(const GPtrArray *runs, guint bound)
{
	guint i;

	for (i = 0; i < runs->len; i++)
		if (count_at(runs, i, bound)->missing)
			return count_at(runs, i, bound)->missing;
	return NULL;
}

/*
 * A baseline of fewer runs than there are now does not tell how its count varies by itself, as that
 * of threads does. It may by as much as it now does.
 */
static double variation_of(const struct finding *finding, const GPtrArray *before,
			   const GPtrArray *now)
{
	if (!finding->bound->factor || before->len >= now->len)
		return 0;
	return finding->high - finding->low;
}

static void judge_count(struct finding *finding, const GPtrArray *before, const GPtrArray *now,
			guint bound)
{
	const struct count *least = count_at(now, 0, bound);
	double most_before = 0; /* with what was lost */
	double variation;
	unsigned int over = 0, within = 0;
	guint i;

	finding->reason = find_missing(now, bound);
	if (!finding->reason && finding->bound->factor)
		finding->reason = find_missing(before, bound);
	if (finding->reason) {
		finding->result = GATE_MISSING;
		return;
	}
	for (i = 0; i < before->len; i++) {
		const struct count *count = count_at(before, i, bound);

		finding->before = fmax(finding->before, count->value);
		most_before = MAX(most_before, count->value + count->lost);
		if (count->lost && finding->bound->factor)
			finding->reason = count->reason;
	}
	for (i = 0; i < now->len; i++) {
		finding->low = fmin(finding->low, count_at(now, i, bound)->value);
		finding->high = fmax(finding->high, count_at(now, i, bound)->value);
	}
	variation = variation_of(finding, before, now);
	finding->limit = limit_of(finding->bound, finding->before) + variation;
	for (i = 0; i < now->len; i++) {
		const struct count *count = count_at(now, i, bound);
		enum gate_result result = judge_run(
			count, finding->limit, limit_of(finding->bound, most_before) + variation);

		over += result == GATE_OVER;
		within += result == GATE_WITHIN;
		if (count->value < least->value)
			least = count;
		if (!finding->reason)
			finding->reason = count->reason;
	}
	finding->now = least->value;
	finding->result = over == now->len ? GATE_OVER : within ? GATE_WITHIN : GATE_UNSURE;
	if (finding->result != GATE_UNSURE)
		finding->reason = NULL;
	finding->sites = compare_sites(before, least, bound);
}

/* ---- times ---- */

static void judge_time(struct finding *finding, const struct comparison *times)
{
	const struct bound *bound = finding->bound;
	enum compare_kind kind = bound->scope == GATE_TOLL   ? COMPARE_TOLL :
				 bound->scope == GATE_FAMILY ? COMPARE_FAMILY :
							       COMPARE_TOTAL;
	const struct figure *figure =
		times ? comparison_find(times, kind, *bound->of ? bound->of : "observed") : NULL;
	struct difference bounds;
	double low;

	finding->result = GATE_UNSURE;
	finding->reason = "it was not captured";
	if (!figure || isnan(figure->estimate[WITH].mean))
		return;
	bounds = figure_bounds(figure, WITH);
	finding->now = bounds.value;
	finding->low = bounds.low;
	finding->high = bounds.high;
	finding->before = figure->estimate[WITHOUT].mean;
	finding->limit = bound->factor ? bound->factor * finding->before : bound->more;
	low = bound->factor ? figure->ratio.low : finding->low;
	finding->reason = NULL;
	/* Of no time at all in some run there is no ratio, and no interval. */
	if (isnan(low) && !(finding->now <= finding->limit)) {
		finding->reason = "some runs took no time for it, which has no interval";
		return;
	}
	finding->result =
		low > (bound->factor ? bound->factor : finding->limit) ? GATE_OVER : GATE_WITHIN;
}

void verdict_doubt_times(struct verdict *verdict, const char *losses)
{
	guint i;

	for (i = 0; i < verdict->findings->len; i++) {
		struct finding *finding = g_ptr_array_index(verdict->findings, i);

		if (finding->bound->metric != GATE_TIME || finding->result != GATE_WITHIN)
			continue;
		finding->result = GATE_UNSURE;
		finding->reason = losses;
		verdict->unsure++;
	}
}

struct verdict *verdict_new(const struct bounds *budget, const GPtrArray *before,
			    const GPtrArray *now, const struct comparison *times)
{
	struct verdict *verdict = g_new0(struct verdict, 1);
	guint i;

	verdict->findings = g_ptr_array_new_with_free_func(finding_free);
	for (i = 0; i < budget->list->len; i++) {
		struct finding *finding = g_new0(struct finding, 1);

		finding->bound = g_ptr_array_index(budget->list, i);
		finding->before = finding->now = finding->low = finding->high = NAN;
		if (finding->bound->metric == GATE_TIME)
			judge_time(finding, times);
		else
			judge_count(finding, before, now, i);
		verdict->over += finding->result == GATE_OVER;
		verdict->unsure += finding->result == GATE_UNSURE;
		verdict->missing += finding->result == GATE_MISSING;
		g_ptr_array_add(verdict->findings, finding);
	}
	return verdict;
}
