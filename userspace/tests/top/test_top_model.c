// SPDX-License-Identifier: GPL-2.0
/* What keys do to what is looked at, and how it is drawn: without a terminal, and without BPF. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "top/top_draw.h"
#include "top/top_keys.h"
#include "top/top_figures.h"
#include "top/top_lines.h"
#include "top/top_machine_probes.h"

#define S 1000000000ULL

static const struct top_columns processes = {
	.name = "processes",
	.label = "NAME",
	.label_key = "name",
	.text = "COMMAND",
	.text_keys = { "command" },
	.count = 2,
	.columns = { { "TOLL", "toll_s", TOP_PART }, { "FAULTS", "faults", TOP_COUNT } },
};

static const struct top_columns sites = {
	.name = "sites",
	.label = "TOLL",
	.label_key = "toll",
	.text_keys = { "allocated_at", "touched_at" },
	.count = 1,
	.columns = { { "TIME", "time_s", TOP_PART } },
};

static void add_process(struct top_snapshot *snapshot, int pid, const char *name, double toll,
			double faults)
{
	struct top_row *row = top_row_add(&snapshot->processes, pid, name, name, NULL);
	struct top_row *site = top_row_add(&snapshot->details, pid, "zero.libc", name, "elsewhere");

	row->values[0] = toll;
	row->values[1] = faults;
	site->values[0] = toll;
}

/* The second of so many: redis pays most, mariadb has more faults. */
static struct top_snapshot *snapshot_at(unsigned int second, double share)
{
	struct top_snapshot *snapshot = top_snapshot_new("target", &processes, &sites);
	const struct top_measure zeroing = { "zero.libc", "zeroing", share * S, share, true };
	const struct top_measure compute = { "compute", "compute", (1 - share) * S, 1 - share,
					     true };

	snapshot->target = g_strdup("pid 7");
	snapshot->elapsed_ns = second * S;
	snapshot->interval_ns = S;
	snapshot->observed_ns = S;
	snapshot->overhead = 0.012;
	snapshot->limit = 0.05;
	snapshot->recorded = true;
	g_array_append_val(snapshot->measures, zeroing);
	g_array_append_val(snapshot->measures, compute);
	add_process(snapshot, 7, "redis", 0.6 * S, 11);
	add_process(snapshot, 9, "mariadb", 0.2 * S, 1009);
	return snapshot;
}

static struct top_model *model_of(unsigned int seconds, double share)
{
	struct top_model *model = top_model_new();
	unsigned int i;

	for (i = 1; i <= seconds; i++)
		top_model_take(model, snapshot_at(i, share));
	return model;
}

static void type(struct top_model *model, const char *text)
{
	for (; *text; text++)
		top_key(model, (unsigned char)*text);
}

static const char *first(const struct top_model *model)
{
	g_autoptr(GPtrArray) rows = top_model_processes(model);

	return rows->len ? ((struct top_row *)g_ptr_array_index(rows, 0))->label : "nobody";
}

static char *drawn(const struct top_model *model, unsigned int columns, unsigned int lines)
{
	struct top_canvas *canvas = top_canvas_new(columns, lines);
	GString *text = g_string_new(NULL);
	unsigned int i;

	top_draw(canvas, model, true);
	for (i = 0; i < lines; i++) {
		g_autofree char *line = top_canvas_line(canvas, i);

		g_string_append_printf(text, "%s\n", line);
	}
	top_canvas_free(canvas);
	return g_string_free(text, FALSE);
}

static void assert_has(char *text, const char *part, bool has)
{
	if (!strstr(text, part) == has)
		print_message("%s\nand: %s\n", text, part);
	assert_int_equal(strstr(text, part) != NULL, has);
	g_free(text);
}

static void test_sorts(void **state)
{
	struct top_model *model = model_of(1, 0.5);

	(void)state;
	assert_string_equal(first(model), "redis");
	type(model, ">");
	assert_string_equal(first(model), "mariadb");
	type(model, "r");
	assert_string_equal(first(model), "redis");
	type(model, "r>");
	assert_string_equal(first(model), "mariadb"); /* by name */
	type(model, ">");
	assert_string_equal(first(model), "redis");
	top_model_free(model);
}

static void test_filters(void **state)
{
	struct top_model *model = model_of(1, 0.5);

	(void)state;
	type(model, "/maria\r");
	assert_string_equal(first(model), "mariadb");
	assert_has(drawn(model, 80, 24), "filter /maria", true);
	type(model, "/nobody\r");
	assert_string_equal(first(model), "nobody");
	type(model, "/7\r");
	assert_string_equal(first(model), "redis"); /* its pid */
	/* Given up: as before. */
	type(model, "/x\x1b");
	assert_string_equal(first(model), "redis");
	type(model, "/\r");
	assert_null(model->filter);
	/* What is typed is no key. */
	type(model, "/q\r");
	assert_false(model->quit);
	top_model_free(model);
}

static void test_chosen_process_stays(void **state)
{
	struct top_model *model = model_of(1, 0.5);
	g_autoptr(GPtrArray) rows = NULL;

	(void)state;
	assert_int_equal(top_model_chosen(model)->pid, 7);
	type(model, "j");
	assert_int_equal(top_model_chosen(model)->pid, 9);
	type(model, ">");
	top_model_take(model, snapshot_at(2, 0.5));
	assert_int_equal(top_model_chosen(model)->pid, 9);
	rows = top_model_details(model);
	assert_int_equal(rows->len, 1);
	assert_string_equal(((struct top_row *)g_ptr_array_index(rows, 0))->text[0], "mariadb");
	type(model, "jjjkkkk");
	assert_int_equal(model->chosen, 0);
	top_model_free(model);
}

static void test_pauses(void **state)
{
	struct top_model *model = model_of(3, 0.5);

	(void)state;
	type(model, "p");
	top_model_take(model, snapshot_at(4, 0.5));
	top_model_take(model, snapshot_at(5, 0.5));
	assert_int_equal(model->shown->elapsed_ns, 3 * S);
	assert_has(drawn(model, 80, 24), "PAUSED", true);
	type(model, " ");
	assert_int_equal(model->shown->elapsed_ns, 5 * S);
	assert_has(drawn(model, 80, 24), "PAUSED", false);
	type(model, "p");
	top_model_take(model, snapshot_at(6, 0.5));
	top_model_free(model);
}

static void test_sums(void **state)
{
	struct top_model *model = model_of(5, 0.5);

	(void)state;
	type(model, "t>");
	assert_string_equal(first(model), "mariadb");
	assert_int_equal(top_model_chosen(model)->values[1], 5 * 1009);
	assert_int_equal(top_model_time(model), 5 * S);
	top_model_free(model);
}

/* Of processes that come and go for weeks those that cost most stay. */
static void test_sums_are_bounded(void **state)
{
	struct top_model *model = model_of(5, 0.5);
	int i;

	(void)state;
	for (i = 0; i < 3 * TOP_ROWS_MOST; i++) {
		struct top_snapshot *snapshot = snapshot_at(6, 0.5);

		add_process(snapshot, 1000 + i, "short", 1, 1);
		top_model_take(model, snapshot);
	}
	assert_in_range(model->total->processes.rows->len, TOP_ROWS_LEAST / 2, TOP_ROWS_LEAST);
	assert_true(model->total->details.rows->len <= TOP_ROWS_LEAST);
	assert_int_equal(g_hash_table_size(model->sums),
			 model->total->processes.rows->len + model->total->details.rows->len);
	type(model, "t>");
	assert_string_equal(first(model), "mariadb");
	assert_true(top_model_chosen(model)->values[1] == (5.0 + 3 * TOP_ROWS_MOST) * 1009);
	top_model_free(model);
}

/* Where there are many at the moment all of them have their sums. */
static void test_sums_of_many(void **state)
{
	struct top_model *model = model_of(5, 0.5);
	int i, k;

	(void)state;
	for (k = 0; k < 3; k++) {
		struct top_snapshot *snapshot = snapshot_at(6 + k, 0.5);

		for (i = 0; i < TOP_ROWS_MOST - 101; i++)
			add_process(snapshot, 1000 + i, "long", 1, 1);
		top_model_take(model, snapshot);
	}
	assert_in_range(model->total->processes.rows->len, TOP_ROWS_MOST - 101, TOP_ROWS_MOST);
	for (i = 0; i < 3 * TOP_ROWS_MOST; i++) {
		struct top_snapshot *snapshot = snapshot_at(9, 0.5);

		add_process(snapshot, 10000 + i, "short", 1, 1);
		top_model_take(model, snapshot);
	}
	assert_in_range(model->total->processes.rows->len, TOP_ROWS_LEAST / 2, TOP_ROWS_LEAST);
	top_model_free(model);
}

static void test_verdict(void **state)
{
	struct top_model *model = top_model_new();
	g_autofree char *none = top_model_verdict(model), *high = NULL, *low = NULL, *other = NULL;

	(void)state;
	assert_string_equal(none, "nothing observed yet");
	top_model_take(model, snapshot_at(1, 0.9));
	high = top_model_verdict(model);
	assert_string_equal(high, "zeroing dominates, 90 %");
	top_model_take(model, snapshot_at(2, 0.0));
	top_model_take(model, snapshot_at(3, 0.0));
	low = top_model_verdict(model);
	assert_string_equal(low, "it computes, 70 %; no toll is larger");
	model->last->sentence = g_strdup("said");
	other = top_model_verdict(model);
	assert_string_equal(other, "said");
	top_model_free(model);
}

static void test_history_is_bounded(void **state)
{
	struct top_model *model = model_of(TOP_HISTORY + 7, 0.25);
	const struct top_history *history;

	(void)state;
	history = &g_array_index(model->history, struct top_history, 0);
	assert_int_equal(history->count, TOP_HISTORY);
	assert_true(history->most == 0.25);
	top_model_free(model);
}

static void test_marks(void **state)
{
	struct top_model *model = model_of(2, 0.5);

	(void)state;
	type(model, "mdeploy q");
	assert_false(model->quit);
	top_key(model, TOP_KEY_RUBOUT);
	top_key(model, TOP_KEY_RUBOUT);
	top_key(model, '\r');
	assert_int_equal(model->marks->len, 1);
	assert_string_equal(g_ptr_array_index(model->marks, 0), "deploy");
	assert_has(drawn(model, 80, 24), "marked at 2.0 s: deploy", true);
	model->last->recorded = false;
	type(model, "mnowhere");
	top_key(model, '\r');
	assert_int_equal(model->marks->len, 1);
	assert_has(drawn(model, 80, 24), "not marked: no recording is kept", true);
	type(model, "q");
	assert_true(model->quit);
	top_model_free(model);
}

/* Every size, whatever is shown: nothing is written beside the canvas (sanitizers), nor left out. */
static void test_sizes(void **state)
{
	struct top_model *model = model_of(30, 0.5);
	unsigned int columns, lines;
	char *text;

	(void)state;
	for (columns = 1; columns < 140; columns += 7)
		for (lines = 1; lines < 50; lines += 3)
			free(drawn(model, columns, lines));
	text = drawn(model, 80, 24);
	assert_non_null(strstr(text, "So far: zeroing dominates, 50 %"));
	assert_non_null(strstr(text, "overhead 1.2 % of 5 %  losses none  interval 1.0 s"));
	assert_non_null(strstr(text, "      7 redis"));
	assert_has(text, "redis", true);
	assert_has(drawn(model, 30, 24), "too small", true);
	type(model, "?");
	assert_has(drawn(model, 80, 24), "choose a process", true);
	top_model_free(model);
	model = top_model_new();
	assert_has(drawn(model, 80, 24), "attaching", true);
	type(model, "jk<>op/x\rt");
	free(drawn(model, 80, 24));
	top_model_free(model);
}

/* A name may hold anything; it has one line, and its letters a column each. */
static void test_names_are_harmless(void **state)
{
	struct top_model *model = model_of(1, 0.5);
	struct top_snapshot *snapshot = snapshot_at(2, 0.5);
	char *text;

	(void)state;
	add_process(snapshot, 11, "a\x1b[2J\nb\xff\xe6\xbc\xa2\xcc\x81", 0.9 * S, 1);
	top_model_take(model, snapshot);
	text = drawn(model, 80, 24);
	assert_null(strchr(text, '\x1b'));
	assert_has(text, "     11 a", true);
	top_model_free(model);
}

static void test_figures(void **state)
{
	static const struct {
		enum top_unit unit;
		double value;
		const char *text;
	} figures[] = {
		{ TOP_COUNT, 0, "-" },
		{ TOP_COUNT, 99999, "99999" },
		{ TOP_COUNT, 1234567, "1.23M" },
		{ TOP_BYTES, 512, "512B" },
		{ TOP_BYTES, 10485760, "10.0M" },
		{ TOP_TIME, 1500, "1.5us" },
		{ TOP_TIME, 2.5e9, "2.5s" },
		{ TOP_PART, 0.5 * S, "50%" },
		{ TOP_PART, 0.004 * S, "0.4%" },
	};
	char text[TOP_FIGURE];
	g_autofree char *spark = NULL;
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(figures); i++) {
		top_figure(text, figures[i].unit, figures[i].value, S);
		assert_string_equal(text, figures[i].text);
	}
	spark = top_sparkline((const double[]){ 0, 0.5, 1 }, 3, 1, true);
	assert_string_equal(spark, "_=#");
}

static void test_json_is_escaped(void **state)
{
	struct top_model *model = top_model_new();
	struct top_snapshot *snapshot = snapshot_at(1, 0.5);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	add_process(snapshot, 11, "say \"\\\"", 0.9 * S, 1);
	top_model_take(model, snapshot);
	top_lines_json(out, model);
	top_lines_text(out, model);
	fclose(out);
	assert_non_null(strstr(text, "\"name\":\"say \\\"\\\\\\\"\""));
	assert_non_null(strstr(text, "1.0 s  so far: zeroing dominates, 50 %  overhead 1.20 %"));
	assert_non_null(strstr(text,
			       "1.0 s  site 7 zero.libc  TIME 60%  redis  touched elsewhere"));
	free(text);
	top_model_free(model);
}

/* Whatever it costs, it is watched as much as the limit allows soon, and all the time if it may. */
static void test_duty(void **state)
{
	double duty = 1, price = 0.3; /* of the machine, if it is watched all the time */
	int i;

	(void)state;
	duty = machine_duty(duty, duty * price, 0.006);
	assert_true(duty * price <= 0.0061);
	for (i = 0; i < 20; i++)
		duty = machine_duty(duty, duty * 0.001, 0.006);
	assert_true(duty == 1);
	assert_true(machine_duty(1, 10, 0.006) > 0);
	assert_true(machine_duty(1, 0.9, 0) == 1);
	assert_true(machine_duty(0.1, 0, 0.006) == 0.4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sorts),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_chosen_process_stays),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_sums_are_bounded),
		cmocka_unit_test(test_sums_of_many),
		cmocka_unit_test(test_verdict),
		cmocka_unit_test(test_history_is_bounded),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_names_are_harmless),
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_json_is_escaped),
		cmocka_unit_test(test_duty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
