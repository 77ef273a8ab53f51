// SPDX-License-Identifier: GPL-2.0
#include "top/top_model.h"

#include <string.h>

#define FAMILIES 16
#define DOMINATES (1.0 / 3) /* of the observed time, as in the report */

struct top_model *top_model_new(void)
{
	struct top_model *model = g_new0(struct top_model, 1);

	model->history = g_array_new(FALSE, TRUE, sizeof(struct top_history));
	model->sums = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	model->marks = g_ptr_array_new_with_free_func(g_free);
	return model;
}

static void drop(struct top_model *model)
{
	if (model->shown != model->last)
		top_snapshot_free(model->shown);
	top_snapshot_free(model->last);
	model->last = model->shown = NULL;
}

void top_model_free(struct top_model *model)
{
	if (!model)
		return;
	drop(model);
	top_snapshot_free(model->total);
	g_hash_table_destroy(model->sums);
	g_array_free(model->history, TRUE);
	g_ptr_array_free(model->marks, TRUE);
	g_free(model->filter);
	g_free(model->said);
	g_free(model);
}

static void add_history(struct top_model *model, const struct top_measure *measure)
{
	struct top_history *history = NULL;
	guint i;

	for (i = 0; i < model->history->len; i++) {
		history = &g_array_index(model->history, struct top_history, i);
		if (history->measure.name == measure->name)
			break;
	}
	if (i == model->history->len) {
		g_array_set_size(model->history, i + 1);
		history = &g_array_index(model->history, struct top_history, i);
	}
	history->measure = *measure;
	history->time_ns += measure->time_ns;
	if (history->count == TOP_HISTORY)
		memmove(history->values, history->values + 1,
			(TOP_HISTORY - 1) * sizeof(*history->values));
	else
		history->count++;
	history->values[history->count - 1] = measure->value;
	history->most = 0;
	for (i = 0; i < history->count; i++)
		history->most = MAX(history->most, history->values[i]);
}

/* A process is the same whatever it is called now. */
static char *key_of(const struct top_table *table, const struct top_row *row, bool by_pid)
{
	if (by_pid && row->pid)
		return g_strdup_printf("%" G_GINT64_FORMAT, row->pid);
	return g_strdup_printf("%s\n%" G_GINT64_FORMAT "\n%s\n%s\n%s", table->columns->name,
			       row->pid, row->label, row->text[0],
			       row->text[1] ? row->text[1] : "");
}

static void rename_row(struct top_row *row, const struct top_row *now)
{
	if (strcmp(row->label, now->label) != 0) {
		g_free(row->label);
		row->label = g_strdup(now->label);
	}
	if (strcmp(row->text[0], now->text[0]) != 0) {
		g_free(row->text[0]);
		row->text[0] = g_strdup(now->text[0]);
	}
}

static gint by_first(gconstpointer a, gconstpointer b)
{
	double left = (*(struct top_row *const *)a)->values[0];
	double right = (*(struct top_row *const *)b)->values[0];

	return (left < right) - (left > right);
}

/* The half with the least goes: mostly processes that are long gone. */
static void halve(struct top_model *model, struct top_table *total, bool by_pid)
{
	guint half = total->rows->len / 2, i;

	g_ptr_array_sort(total->rows, by_first);
	for (i = half; i < total->rows->len; i++) {
		g_autofree char *key = key_of(total, g_ptr_array_index(total->rows, i), by_pid);

		g_hash_table_remove(model->sums, key);
	}
	g_ptr_array_set_size(total->rows, (gint)half);
}

static void add_rows(struct top_model *model, struct top_table *total,
		     const struct top_table *table, bool by_pid)
{
	guint most = CLAMP(2 * table->rows->len, TOP_ROWS_LEAST, TOP_ROWS_MOST), i;
	struct top_row *row, *sum;
	size_t column;

	for (i = 0; i < table->rows->len; i++) {
		char *key;

		row = g_ptr_array_index(table->rows, i);
		key = key_of(table, row, by_pid);
		sum = g_hash_table_lookup(model->sums, key);
		if (!sum && total->rows->len >= most)
			halve(model, total, by_pid);
		if (!sum) {
			sum = top_row_add(total, row->pid, row->label, row->text[0], row->text[1]);
			g_hash_table_insert(model->sums, g_steal_pointer(&key), sum);
		}
		if (by_pid)
			rename_row(sum, row);
		for (column = 0; column < table->columns->count; column++)
			sum->values[column] += row->values[column];
		g_free(key);
	}
}

void top_model_take(struct top_model *model, struct top_snapshot *snapshot)
{
	guint i;

	if (!model->total)
		model->total = top_snapshot_new(snapshot->kind, snapshot->processes.columns,
						snapshot->details.columns);
	for (i = 0; i < snapshot->measures->len; i++)
		add_history(model, &g_array_index(snapshot->measures, struct top_measure, i));
	add_rows(model, &model->total->processes, &snapshot->processes, true);
	add_rows(model, &model->total->details, &snapshot->details, false);
	model->total->elapsed_ns = snapshot->elapsed_ns;
	model->observed_ns += snapshot->observed_ns;
	if (model->last != model->shown)
		top_snapshot_free(model->last);
	else if (!model->paused)
		top_snapshot_free(model->shown);
	model->last = snapshot;
	if (!model->paused)
		model->shown = snapshot;
	if (!model->paused)
		top_model_choose(model, 0);
}

void top_model_say(struct top_model *model, const char *text)
{
	g_free(model->said);
	model->said = g_strdup(text);
}

void top_model_pause(struct top_model *model)
{
	model->paused = !model->paused;
	if (model->paused || model->shown == model->last)
		return;
	top_snapshot_free(model->shown);
	model->shown = model->last;
	top_model_choose(model, 0);
}

/* Of totals those of now, though it is paused: they are no moment. */
static const struct top_snapshot *seen(const struct top_model *model)
{
	return model->totals ? model->total : model->shown;
}

uint64_t top_model_time(const struct top_model *model)
{
	const struct top_snapshot *snapshot = seen(model);

	if (!snapshot)
		return 0;
	return model->totals ? snapshot->elapsed_ns : snapshot->interval_ns;
}

static gint compare_rows(gconstpointer a, gconstpointer b, gpointer data)
{
	const struct top_row *left = *(struct top_row *const *)a;
	const struct top_row *right = *(struct top_row *const *)b;
	const struct top_model *model = data;
	int order = 0;

	if (model->sort >= seen(model)->processes.columns->count)
		order = strcmp(left->label, right->label);
	else if (left->values[model->sort] != right->values[model->sort])
		order = left->values[model->sort] < right->values[model->sort] ? 1 : -1;
	if (model->backward)
		order = -order;
	if (!order)
		order = (left->pid > right->pid) - (left->pid < right->pid);
	return order;
}

static gint compare_details(gconstpointer a, gconstpointer b)
{
	const struct top_row *left = *(struct top_row *const *)a;
	const struct top_row *right = *(struct top_row *const *)b;

	if (left->values[0] != right->values[0])
		return left->values[0] < right->values[0] ? 1 : -1;
	return strcmp(left->label, right->label);
}

static bool passes(const struct top_model *model, const struct top_row *row)
{
	g_autofree char *pid = g_strdup_printf("%" G_GINT64_FORMAT, row->pid);

	return !model->filter || strstr(row->label, model->filter) ||
	       strstr(row->text[0], model->filter) || !strcmp(pid, model->filter);
}

GPtrArray *top_model_processes(const struct top_model *model)
{
	const struct top_snapshot *snapshot = seen(model);
	GPtrArray *rows = g_ptr_array_new();
	guint i;

	for (i = 0; snapshot && i < snapshot->processes.rows->len; i++) {
		struct top_row *row = g_ptr_array_index(snapshot->processes.rows, i);

		if (passes(model, row))
			g_ptr_array_add(rows, row);
	}
	if (snapshot)
		g_ptr_array_sort_with_data(rows, compare_rows, (gpointer)model);
	return rows;
}

const struct top_row *top_model_chosen(const struct top_model *model)
{
	g_autoptr(GPtrArray) rows = top_model_processes(model);

	if (!rows->len)
		return NULL;
	return g_ptr_array_index(rows, MIN(model->chosen, rows->len - 1));
}

GPtrArray *top_model_details(const struct top_model *model)
{
	const struct top_row *chosen = top_model_chosen(model);
	const struct top_snapshot *snapshot = seen(model);
	GPtrArray *rows = g_ptr_array_new();
	guint i;

	for (i = 0; snapshot && i < snapshot->details.rows->len; i++) {
		struct top_row *row = g_ptr_array_index(snapshot->details.rows, i);

		if (!row->pid || (chosen && chosen->pid == row->pid))
			g_ptr_array_add(rows, row);
	}
	g_ptr_array_sort(rows, compare_details);
	return rows;
}

/* 0: the same process as before, wherever it is now; or the first, where none was chosen. */
void top_model_choose(struct top_model *model, int by)
{
	g_autoptr(GPtrArray) rows = top_model_processes(model);
	guint i;

	if (!rows->len)
		return;
	if (by) {
		model->chosen = CLAMP((int)model->chosen + by, 0, (int)rows->len - 1);
		model->chosen_pid = ((struct top_row *)g_ptr_array_index(rows, model->chosen))->pid;
		model->scrolled = 0;
		return;
	}
	model->chosen = 0;
	for (i = 0; model->chosen_pid && i < rows->len; i++)
		if (((struct top_row *)g_ptr_array_index(rows, i))->pid == model->chosen_pid)
			model->chosen = i;
}

void top_model_sort_next(struct top_model *model, int by)
{
	int choices;

	if (!model->shown)
		return;
	choices = (int)model->shown->processes.columns->count + 1;
	model->sort = ((int)model->sort + by + choices) % choices;
	top_model_choose(model, 0);
}

struct family {
	const char *name;
	double time_ns;
};

static size_t add_family(struct family *families, size_t count, const struct top_history *history)
{
	size_t i = 0;

	while (i < count && strcmp(families[i].name, history->measure.family) != 0)
		i++;
	if (i == FAMILIES)
		return count;
	if (i == count)
		families[i] = (struct family){ history->measure.family, 0 };
	families[i].time_ns += history->time_ns;
	return MAX(count, i + 1);
}

const char *top_model_family(const struct top_model *model, double *share)
{
	struct family families[FAMILIES];
	const struct family *most = NULL;
	size_t count = 0, i;

	if (model->observed_ns <= 0)
		return NULL;
	for (i = 0; i < model->history->len; i++)
		count = add_family(families, count,
				   &g_array_index(model->history, struct top_history, i));
	for (i = 0; i < count; i++)
		if (!most || families[i].time_ns > most->time_ns)
			most = &families[i];
	if (!most)
		return NULL;
	*share = MIN(1.0, most->time_ns / model->observed_ns);
	return most->name;
}

char *top_model_verdict(const struct top_model *model)
{
	const char *family;
	double share;

	if (model->last && model->last->sentence)
		return g_strdup(model->last->sentence);
	family = top_model_family(model, &share);
	if (!family)
		return g_strdup("nothing observed yet");
	if (!strcmp(family, "compute"))
		return g_strdup_printf("it computes, %.0f %%; no toll is larger", 100 * share);
	if (share < DOMINATES)
		return g_strdup_printf("nothing dominates; most is %s, %.0f %%", family,
				       100 * share);
	return g_strdup_printf("%s dominates, %.0f %%", family, 100 * share);
}
