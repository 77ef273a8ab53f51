// SPDX-License-Identifier: GPL-2.0
#include "top/top_lines.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "top/top_draw.h"
#include "top/top_figures.h"
#include "top_schema.h"

#define PROCESSES 10 /* of an interval */
#define DETAILS 5    /* of a process */
#define SHARE_LEAST 0.005

static void print_values(FILE *out, const struct top_columns *columns, const struct top_row *row,
			 uint64_t time_ns)
{
	char figure[TOP_FIGURE];
	size_t i;

	for (i = 0; i < columns->count; i++) {
		if (row->values[i] <= 0)
			continue;
		top_figure(figure, columns->columns[i].unit, row->values[i], time_ns);
		fprintf(out, "  %s %s", columns->columns[i].title, figure);
	}
}

static void print_details(FILE *out, const struct top_model *model, const char *time, int64_t pid)
{
	const struct top_snapshot *last = model->last;
	const struct top_columns *columns = last->details.columns;
	int left = DETAILS;
	guint i;

	for (i = 0; i < last->details.rows->len && left; i++) {
		const struct top_row *row = g_ptr_array_index(last->details.rows, i);

		if (row->pid != pid)
			continue;
		left--;
		if (pid)
			fprintf(out, "%s  site %" G_GINT64_FORMAT " %s", time, pid, row->label);
		else
			fprintf(out, "%s  %s %s", time, columns->name, row->label);
		print_values(out, columns, row, last->interval_ns);
		fprintf(out, "  %s", row->text[0]);
		if (row->text[1] && strcmp(row->text[0], row->text[1]) != 0)
			fprintf(out, "  touched %s", row->text[1]);
		fputc('\n', out);
	}
}

void top_lines_text(FILE *out, const struct top_model *model)
{
	const struct top_snapshot *last = model->last;
	g_autofree char *verdict = top_model_verdict(model), *losses = top_losses(last);
	g_autoptr(GPtrArray) rows = top_model_processes(model);
	char time[32], figure[TOP_FIGURE];
	guint i;

	g_snprintf(time, sizeof(time), "%.1f s", last->elapsed_ns / 1e9);
	fprintf(out, "%s  so far: %s  overhead %.2f %%  losses %s", time, verdict,
		100 * last->overhead, losses);
	for (i = 0; i < last->measures->len; i++) {
		const struct top_measure *measure =
			&g_array_index(last->measures, struct top_measure, i);

		if (measure->value < (measure->is_share ? SHARE_LEAST : 0.5))
			continue;
		top_measure_figure(figure, measure);
		fprintf(out, "  %s %s", measure->name, figure);
	}
	fprintf(out, "%s\n", last->estimated ? "  estimated" : "");
	print_details(out, model, time, 0);
	for (i = 0; i < MIN(rows->len, PROCESSES); i++) {
		const struct top_row *row = g_ptr_array_index(rows, i);

		fprintf(out, "%s  pid %" G_GINT64_FORMAT " %s", time, row->pid, row->label);
		print_values(out, last->processes.columns, row, last->interval_ns);
		fputc('\n', out);
		if (row->pid)
			print_details(out, model, time, row->pid);
	}
	fflush(out);
}

/* Printable already. */
static void put_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void put_table(FILE *out, const struct top_table *table, GPtrArray *rows)
{
	const struct top_columns *columns = table->columns;
	guint i, k;

	fprintf(out, ",\"%s\":[", columns->name);
	for (i = 0; i < rows->len; i++) {
		const struct top_row *row = g_ptr_array_index(rows, i);

		fprintf(out, "%s{", i ? "," : "");
		if (row->pid || !strcmp(columns->label_key, "name"))
			fprintf(out, "\"pid\":%" G_GINT64_FORMAT ",", row->pid);
		fprintf(out, "\"%s\":", columns->label_key);
		put_string(out, row->label);
		for (k = 0; k < 2; k++) {
			if (!columns->text_keys[k])
				continue;
			fprintf(out, ",\"%s\":", columns->text_keys[k]);
			put_string(out, row->text[k] ? row->text[k] : row->text[0]);
		}
		for (k = 0; k < columns->count; k++) {
			const struct top_column *column = &columns->columns[k];

			if (column->unit == TOP_TIME || column->unit == TOP_PART)
				fprintf(out, ",\"%s\":%.9f", column->key, row->values[k] / 1e9);
			else
				fprintf(out, ",\"%s\":%.0f", column->key, row->values[k]);
		}
		fputc('}', out);
	}
	fputc(']', out);
}

static void put_verdict(FILE *out, const struct top_model *model)
{
	g_autofree char *verdict = top_model_verdict(model);
	double share = 0;
	const char *family = top_model_family(model, &share);

	fputs(",\"verdict\":{\"sentence\":", out);
	put_string(out, verdict);
	if (family)
		fprintf(out, ",\"most\":\"%s\",\"share\":%.6f", family, share);
	fputc('}', out);
}

void top_lines_json(FILE *out, const struct top_model *model)
{
	const struct top_snapshot *last = model->last;
	g_autoptr(GPtrArray) rows = top_model_processes(model);
	bool exceed = false;
	guint i;

	fprintf(out, "{\"format\":1,\"kind\":\"%s\",\"target\":", last->kind);
	put_string(out, last->target);
	fprintf(out,
		",\"elapsed_s\":%.6f,\"interval_s\":%.6f,\"overhead_pct\":%.4f,\"estimated\":%s",
		last->elapsed_ns / 1e9, last->interval_ns / 1e9, 100 * last->overhead,
		last->estimated ? "true" : "false");
	put_verdict(out, model);
	fputs(",\"measures\":{", out);
	for (i = 0; i < last->measures->len; i++) {
		const struct top_measure *measure =
			&g_array_index(last->measures, struct top_measure, i);

		fprintf(out, "%s\"%s\":%.6f", i ? "," : "", measure->name, measure->value);
	}
	fputs("},\"losses\":{", out);
	for (i = 0; i < last->losses->len; i++) {
		const struct top_loss *loss = &g_array_index(last->losses, struct top_loss, i);

		exceed |= loss->exceeds;
		fprintf(out, "%s\"%s\":%" G_GUINT64_FORMAT, i ? "," : "", loss->name, loss->count);
	}
	fprintf(out, "},\"losses_exceed\":%s", exceed ? "true" : "false");
	put_table(out, &last->processes, rows);
	put_table(out, &last->details, last->details.rows);
	fputs("}\n", out);
	fflush(out);
}

int top_lines_schema(FILE *out)
{
	fputs(top_schema, out);
	return fflush(out) ? -EIO : 0;
}
