// SPDX-License-Identifier: GPL-2.0
#include "top/top_draw.h"

#include <string.h>

#include "base/text.h"
#include "top/top_figures.h"

#define SHARE_LEAST 0.005
#define MEASURES_MOST 8 /* two a line */
#define MEASURE_COLUMNS 39
#define SPARK_COLUMNS 17
#define PROCESSES_MOST 7 /* where details want room, too */
#define LABEL_COLUMNS 15
#define VALUE_COLUMNS 7

static const char *const help[] = {
	"up down, k j   choose a process; its sites are below",
	"< >            sort by another column       r   backward",
	"/              filter by name, command or pid; empty: all",
	"p, blank       pause, and go on             t   sums since the start",
	"o              sites by who allocated, or by who touched",
	"PgUp PgDn      more sites                   ^L  draw again",
	"m              mark: a note with the time, in the recording",
	"q              end                          ?   this",
	"",
	"Tolls: parts of what the target was observed to take. Processes: parts of a",
	"processor. The verdict is that of all intervals so far; report has its bounds.",
	"Of the machine: amounts of the interval; pushed: pages that it threw out of",
	"memory, of anybody's; back: of those, brought in again by their owners.",
};

char *top_losses(const struct top_snapshot *snapshot)
{
	GString *text = g_string_new(NULL);
	guint i;

	for (i = 0; i < snapshot->losses->len; i++) {
		const struct top_loss *loss = &g_array_index(snapshot->losses, struct top_loss, i);

		if (loss->exceeds)
			g_string_append_printf(text, "%s%s", text->len ? "," : "", loss->name);
	}
	if (!text->len)
		g_string_append(text, snapshot->losses->len ? "little" : "none");
	return g_string_free(text, FALSE);
}

static enum top_ink ink_of(const char *family)
{
	if (!strcmp(family, "zeroing"))
		return INK_ZEROING;
	if (!strcmp(family, "swap"))
		return INK_SWAP;
	if (!strcmp(family, "file"))
		return INK_FILE;
	return strcmp(family, "compute") ? INK_MEMORY : INK_PLAIN;
}

/* The verdict first: it is what must be seen if nothing else is. */
static void draw_head(struct top_canvas *canvas, const struct top_model *model)
{
	g_autofree char *verdict = top_model_verdict(model);
	const struct top_snapshot *shown = model->shown;
	g_autofree char *losses = NULL, *head = NULL;
	char limit[32] = "";
	bool exceeds = false;
	int column;
	guint i;

	top_canvas_put(canvas, 0, 0, INK_BOLD, "So far: ");
	column = top_canvas_put(canvas, 0, 8, INK_BOLD, verdict);
	if (!shown)
		return;
	/* Of a long sentence it is the time that stays beside it: the target is known. */
	head = g_strdup_printf("  %s  %.0f s", shown->target, shown->elapsed_ns / 1e9);
	if (g_utf8_strlen(head, -1) > (long)canvas->columns - column) {
		g_free(head);
		head = g_strdup_printf("  %.0f s", shown->elapsed_ns / 1e9);
	}
	text_cut(head, MAX(3, (long)canvas->columns - column));
	top_canvas_right(canvas, 0, 0, (int)canvas->columns, INK_PLAIN, head);
	losses = top_losses(shown);
	for (i = 0; i < shown->losses->len; i++)
		exceeds |= g_array_index(shown->losses, struct top_loss, i).exceeds;
	if (shown->limit > 0)
		g_snprintf(limit, sizeof(limit), " of %.3g %%", 100 * shown->limit);
	g_free(head);
	head = g_strdup_printf("overhead %.1f %%%s", 100 * shown->overhead, limit);
	column = top_canvas_put(
		canvas, 1, 0,
		shown->limit > 0 && shown->overhead > shown->limit ? INK_ALERT : INK_PLAIN, head);
	column = top_canvas_put(canvas, 1, column + 2, INK_PLAIN, "losses ");
	column = top_canvas_put(canvas, 1, column, exceeds ? INK_ALERT : INK_PLAIN, losses);
	g_free(head);
	head = g_strdup_printf("  interval %.1f s%s%s%s", shown->interval_ns / 1e9,
			       shown->estimated ? "  estimated" : "",
			       model->filter ? "  filter /" : "",
			       model->filter ? model->filter : "");
	column = top_canvas_put(canvas, 1, column, INK_PLAIN, head);
	if (model->paused)
		column = top_canvas_put(canvas, 1, column + 2, INK_ALERT, "PAUSED");
	if (model->ended)
		top_canvas_put(canvas, 1, column + 2, INK_ALERT, "ENDED");
}

/* What was ever there, in the order of the report; the line after them. */
static int draw_measures(struct top_canvas *canvas, const struct top_model *model, bool ascii)
{
	int places = canvas->columns >= 2 * MEASURE_COLUMNS + 1 ? 2 : 1, seen = 0;
	guint i;

	for (i = 0; i < model->history->len && seen < MEASURES_MOST / 2 * places; i++) {
		const struct top_history *history =
			&g_array_index(model->history, struct top_history, i);
		int line = 2 + seen / places, column = seen % places * (MEASURE_COLUMNS + 1);
		size_t count = MIN(history->count, SPARK_COLUMNS);
		enum top_ink ink = ink_of(history->measure.family);
		g_autofree char *spark = NULL;
		char figure[TOP_FIGURE];

		if (history->most < (history->measure.is_share ? SHARE_LEAST : 1e-9))
			continue;
		spark = top_sparkline(history->values + history->count - count, count,
				      history->measure.is_share ? 1.0 : history->most, ascii);
		top_measure_figure(figure, &history->measure);
		top_canvas_put(canvas, line, column, ink, history->measure.name);
		top_canvas_right(canvas, line, column + 12, 8, ink, figure);
		top_canvas_put(canvas, line, column + 21, ink, spark);
		seen++;
	}
	return 2 + (seen + places - 1) / places;
}

/* Of a path the end tells most. Freed by the caller. */
static char *shortened(const char *label, int columns)
{
	long length = g_utf8_strlen(label, -1);
	char *text;

	if (*label == '/' && length > columns)
		return g_strconcat("...", g_utf8_offset_to_pointer(label, length - columns + 3),
				   NULL);
	text = g_strdup(label);
	text_cut(text, columns);
	return text;
}

/* How many columns there is room for, the text with at least so many letters. */
static size_t columns_shown(const struct top_canvas *canvas, const struct top_columns *columns,
			    int before, int text)
{
	int room = (int)canvas->columns - before - text;

	return MIN(columns->count, (size_t)(MAX(room, 0) / VALUE_COLUMNS));
}

static void draw_values(struct top_canvas *canvas, int line, int column,
			const struct top_columns *columns, size_t count, const struct top_row *row,
			uint64_t time_ns, enum top_ink ink)
{
	char figure[TOP_FIGURE];
	size_t i;

	for (i = 0; i < count; i++) {
		top_figure(figure, columns->columns[i].unit, row->values[i], time_ns);
		column = top_canvas_right(canvas, line, column, VALUE_COLUMNS, ink, figure);
	}
}

static void draw_titles(struct top_canvas *canvas, int line, int column,
			const struct top_columns *columns, size_t count, unsigned int sorted,
			bool backward)
{
	size_t i;

	for (i = 0; i < count; i++) {
		g_autofree char *title = g_strdup_printf("%s%s", columns->columns[i].title,
							 i != sorted ? "" :
							 backward    ? "^" :
								       "v");

		column = top_canvas_right(canvas, line, column, VALUE_COLUMNS, INK_TITLE, title);
	}
}

/* The line after them. */
static int draw_processes(struct top_canvas *canvas, const struct top_model *model, int line,
			  int most)
{
	const struct top_columns *columns = model->shown->processes.columns;
	g_autoptr(GPtrArray) rows = top_model_processes(model);
	int before = 8 + LABEL_COLUMNS + 1, text = canvas->columns > 90 ? 20 : 0;
	size_t count = columns_shown(canvas, columns, before, text);
	int end = before + (int)count * VALUE_COLUMNS + 2;
	guint first = 0, i;

	top_canvas_ink(canvas, line, 0, INK_TITLE);
	top_canvas_right(canvas, line, 0, 7, INK_TITLE, "PID");
	top_canvas_put(canvas, line, 8, INK_TITLE,
		       model->sort >= columns->count ? "NAMEv" : "NAME");
	draw_titles(canvas, line, before, columns, count, model->sort, model->backward);
	if (text)
		top_canvas_put(canvas, line, end, INK_TITLE, columns->text);
	if ((int)model->chosen >= most)
		first = model->chosen - most + 1;
	for (i = first; i < rows->len && (int)(i - first) < most; i++) {
		const struct top_row *row = g_ptr_array_index(rows, i);
		enum top_ink ink = i == model->chosen ? INK_CHOSEN : INK_PLAIN;
		g_autofree char *label = g_strdup(row->label);
		char pid[24];

		line++;
		g_snprintf(pid, sizeof(pid), "%" G_GINT64_FORMAT, row->pid);
		text_cut(label, LABEL_COLUMNS);
		top_canvas_ink(canvas, line, 0, ink);
		top_canvas_right(canvas, line, 0, 7, ink, row->pid ? pid : "-");
		top_canvas_put(canvas, line, 8, ink, label);
		draw_values(canvas, line, before, columns, count, row, top_model_time(model), ink);
		if (text)
			top_canvas_put(canvas, line, end, ink, row->text[0]);
	}
	return line + 1;
}

static void draw_details(struct top_canvas *canvas, const struct top_model *model, int line,
			 int end)
{
	const struct top_columns *columns = model->shown->details.columns;
	g_autoptr(GPtrArray) rows = top_model_details(model);
	const int width = columns->count > 4 ? 20 : 12;
	size_t count = columns_shown(canvas, columns, width, 28);
	int text = width + (int)count * VALUE_COLUMNS + 2;
	guint i;

	if (line >= end)
		return;
	top_canvas_ink(canvas, line, 0, INK_TITLE);
	top_canvas_put(canvas, line, 0, INK_TITLE, columns->label);
	draw_titles(canvas, line, width, columns, count, TOP_VALUES, false);
	top_canvas_put(canvas, line, text, INK_TITLE,
		       columns->text ? columns->text :
		       model->owner  ? "TOUCHED AT (o: allocated)" :
				       "ALLOCATED AT (o: touched)");
	for (i = model->scrolled; i < rows->len && ++line < end; i++) {
		const struct top_row *row = g_ptr_array_index(rows, i);
		const char *said = model->owner && row->text[1] ? row->text[1] : row->text[0];
		g_autofree char *label = shortened(row->label, width);

		top_canvas_put(canvas, line, 0, INK_PLAIN, label);
		draw_values(canvas, line, width, columns, count, row, top_model_time(model),
			    INK_PLAIN);
		top_canvas_put(canvas, line, text, INK_PLAIN, said);
	}
	if (!rows->len)
		top_canvas_put(canvas, line + 1 < end ? line + 1 : line, 0, INK_QUIET, "none yet");
}

static void draw_foot(struct top_canvas *canvas, const struct top_model *model)
{
	int line = (int)canvas->lines - 1;

	if (model->prompt) {
		int column = top_canvas_put(canvas, line, 0, INK_BOLD,
					    model->prompt == TOP_FILTER ? "filter: " : "mark: ");

		column = top_canvas_put(canvas, line, column, INK_PLAIN, model->input);
		top_canvas_put(canvas, line, column, INK_TITLE, " ");
	} else if (model->said) {
		top_canvas_put(canvas, line, 0, INK_ALERT, model->said);
	} else {
		top_canvas_put(
			canvas, line, 0, INK_QUIET,
			model->totals ?
				"SINCE THE START (t: interval)  ? help  q end  / filter  p pause" :
				"? help  q end  <> sort  / filter  p pause  o owner  t sums  m mark");
	}
}

static void draw_help(struct top_canvas *canvas)
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(help) && (int)i + 3 < (int)canvas->lines; i++)
		top_canvas_put(canvas, (int)i + 3, 1, INK_PLAIN, help[i]);
}

void top_draw(struct top_canvas *canvas, const struct top_model *model, bool ascii)
{
	int line, room, most;

	if (canvas->columns < TOP_COLUMNS_LEAST || canvas->lines < TOP_LINES_LEAST) {
		top_canvas_put(canvas, 0, 0, INK_PLAIN, "too small");
		return;
	}
	draw_head(canvas, model);
	draw_foot(canvas, model);
	if (model->help) {
		draw_help(canvas);
		return;
	}
	if (!model->shown) {
		top_canvas_put(canvas, 2, 0, INK_QUIET, "attaching; the first figures come soon");
		return;
	}
	line = draw_measures(canvas, model, ascii);
	room = (int)canvas->lines - 1 - line - 2; /* the titles of two tables */
	most = MAX(1, MIN(MAX(PROCESSES_MOST, room / 2), room * 2 / 3));
	line = draw_processes(canvas, model, line, most);
	draw_details(canvas, model, line, (int)canvas->lines - 1);
}
