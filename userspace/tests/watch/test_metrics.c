// SPDX-License-Identifier: GPL-2.0
/* test_metrics.c: counters that only grow, a bounded number of them, and names that end no line. */
#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/memory_files.h"
#include "watch/json_lines.h"
#include "watch/metrics.h"
#include "watch/openmetrics.h"
#include "watch/target_set.h"

#define S 1e9

static struct target_set *targets;

static struct metrics *make(unsigned int places)
{
	targets = target_set_new();
	assert_true(target_set_add_name(targets, "redis-server"));
	assert_true(target_set_add_cgroup(targets, "a \"quoted\\\" slice"));
	return metrics_new(targets, places);
}

static void finish(struct metrics *metrics)
{
	metrics_free(metrics);
	target_set_free(targets);
}

static void interval(struct metrics *metrics, uint32_t number, double zero_s, double swap_s)
{
	struct worker_message message = {
		.event = WORKER_TARGET,
		.target = { .number = number,
			    .first = !number,
			    .processes = 1,
			    .rss_bytes = 4096,
			    .swap_bytes = 8192,
			    .observed_ns = 2 * S,
			    .overhead_ns = 0.5 * S,
			    .tolls = { { "zero.kernel", "zeroing", zero_s * S, 3, 12288 },
				       { "swap.in", "swap", swap_s * S, 1, 4096 } } },
	};

	metrics_add(metrics, &message);
	message = (struct worker_message){ .event = WORKER_INTERVAL };
	metrics_add(metrics, &message);
}

static void place(struct metrics *metrics, const char *name, double time_s)
{
	struct worker_message message = { .event = WORKER_PLACE_TOLL,
					  .place = { .toll = "swap.in",
						     .call = "malloc",
						     .touched = "walk",
						     .time_ns = time_s * S,
						     .count = 1,
						     .bytes = 4096 } };

	g_strlcpy(message.place.allocated, name, sizeof(message.place.allocated));
	metrics_add(metrics, &message);
}

static void end_recording(struct metrics *metrics)
{
	const struct worker_message message = { .event = WORKER_DONE };

	metrics_add(metrics, &message);
}

static void assert_has(const struct metrics *metrics, const char *line)
{
	g_autoptr(GString) text = openmetrics_text(metrics);

	if (!strstr(text->str, line))
		fail_msg("no '%s' in\n%s", line, text->str);
}

static void test_counters_grow(void **state)
{
	struct metrics *metrics = make(0);

	(void)state;
	interval(metrics, 0, 0.25, 1);
	end_recording(metrics);
	interval(metrics, 0, 0.5, 0);
	assert_has(metrics, "\nmemtoll_toll_seconds_total{target=\"redis-server\","
			    "toll=\"zero.kernel\"} 0.75\n");
	assert_has(metrics, "\nmemtoll_toll_seconds_total{target=\"redis-server\","
			    "toll=\"swap.in\"} 1\n");
	assert_has(metrics, "\nmemtoll_toll_bytes_total{target=\"redis-server\","
			    "toll=\"zero.kernel\"} 24576\n");
	assert_has(metrics, "\nmemtoll_observed_seconds_total{target=\"redis-server\"} 4\n");
	assert_has(metrics, "\nmemtoll_swapped_bytes{target=\"redis-server\"} 8192\n");
	assert_has(metrics, "\nmemtoll_processes{target=\"a \\\"quoted\\\\\\\" slice\"} 0\n");
	assert_has(metrics, "\n# EOF\n");
	finish(metrics);
}

static guint count_of(const struct metrics *metrics, const char *what)
{
	g_autoptr(GString) text = openmetrics_text(metrics);
	g_auto(GStrv) parts = g_strsplit(text->str, what, -1);

	return g_strv_length(parts) - 1;
}

/* Of a cgroup that is there; what is not known is not told. */
static void test_cgroup(void **state)
{
	struct metrics *metrics = make(0);
	struct worker_message message = { .event = WORKER_TARGET, .target = { .number = 1 } };

	(void)state;
	assert_int_equal(count_of(metrics, "memtoll_cgroup_memory_bytes{"), 0);
	memory_figures_clear(&message.target.memory);
	message.target.memory.values[MEMORY_ANON] = 40960;
	message.target.memory.values[MEMORY_MAJOR_FAULTS] = 7;
	metrics_add(metrics, &message);
	assert_has(metrics, "\nmemtoll_cgroup_memory_bytes{target=\"a \\\"quoted\\\\\\\" slice\","
			    "kind=\"anon\"} 40960\n");
	assert_has(metrics, "slice\",event=\"pgmajfault\"} 7\n");
	assert_int_equal(count_of(metrics, "\nmemtoll_cgroup_memory_"), 2);
	memory_figures_clear(&message.target.memory);
	metrics_add(metrics, &message);
	assert_int_equal(count_of(metrics, "\nmemtoll_cgroup_memory_"), 0);
	finish(metrics);
}

/* By the whole recording: up at once, down by growing less, and nothing of the last interval. */
static void test_corrections(void **state)
{
	struct metrics *metrics = make(0);
	struct worker_message message = {
		.event = WORKER_CORRECTION,
		.target = { .observed_ns = 1 * S,
			    .tolls = { { "zero.kernel", "zeroing", 0.5 * S, 1, 4096 },
				       { "swap.in", "swap", -0.75 * S, -1, -4096 } } },
	};
	double value;

	(void)state;
	interval(metrics, 0, 0.25, 1);
	metrics_add(metrics, &message);
	assert_has(metrics, "toll=\"zero.kernel\"} 0.75\n");
	assert_has(metrics, "toll=\"swap.in\"} 1\n");
	assert_has(metrics, "\nmemtoll_observed_seconds_total{target=\"redis-server\"} 3\n");
	assert_has(metrics, "\nmemtoll_processes{target=\"redis-server\"} 1\n");
	assert_true(metrics_value(metrics, 0, "swap.share", &value));
	assert_true(value == 0.5);
	interval(metrics, 0, 0, 0.5);
	assert_has(metrics, "toll=\"swap.in\"} 1\n");
	interval(metrics, 0, 0, 0.5);
	assert_has(metrics, "toll=\"swap.in\"} 1.25\n");
	finish(metrics);
}

/* The heaviest have samples of their own; the rest is one more, and nothing is lost. */
static void test_places_are_bounded(void **state)
{
	struct metrics *metrics = make(2);
	int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		g_autofree char *name = g_strdup_printf("code %02d", i);

		place(metrics, name, 100 - i);
	}
	end_recording(metrics);
	assert_int_equal(count_of(metrics, "memtoll_place_seconds_total{"), 3);
	assert_has(metrics, "allocated=\"code 00\",touched=\"walk\"} 100\n");
	assert_has(metrics, "allocated=\"code 01\",touched=\"walk\"} 99\n");
	assert_has(metrics, "call=\"other\",allocated=\"other\",touched=\"other\"} 4851\n");
	/* Who stays away long enough gives way, and the rest does not leap. */
	for (i = 0; i < 8; i++) {
		place(metrics, "code 00", 100);
		place(metrics, "new code", 60);
		end_recording(metrics);
	}
	assert_int_equal(count_of(metrics, "memtoll_place_seconds_total{"), 3);
	assert_has(metrics, "allocated=\"code 00\",touched=\"walk\"} 900\n");
	assert_has(metrics, "allocated=\"new code\",touched=\"walk\"} 480\n");
	assert_has(metrics, "touched=\"other\"} 4851\n");
	finish(metrics);
}

static void test_names_end_no_line(void **state)
{
	struct metrics *metrics = make(4);

	(void)state;
	place(metrics, "evil\n# EOF\"} 7\\", 1);
	end_recording(metrics);
	assert_has(metrics, "allocated=\"evil?# EOF\\\"} 7\\\\\"");
	assert_int_equal(count_of(metrics, "\n# EOF"), 1);
	finish(metrics);
}

static void test_values(void **state)
{
	struct metrics *metrics = make(0);
	double value;

	(void)state;
	assert_false(metrics_value(metrics, 0, "swap.share", &value));
	interval(metrics, 0, 0.5, 1);
	assert_true(metrics_value(metrics, 0, "swap.share", &value));
	assert_true(value == 0.5);
	assert_true(metrics_value(metrics, 0, "zero.kernel.share", &value));
	assert_true(value == 0.25);
	assert_true(metrics_value(metrics, 0, "overhead.share", &value));
	assert_true(value == 0.2);
	assert_true(metrics_value(metrics, 0, "swap.bytes", &value));
	assert_true(value == 8192);
	assert_false(metrics_value(metrics, 1, "swap.share", &value));
	assert_true(metrics_has_name("swap.in.share"));
	assert_false(metrics_has_name("swap"));
	finish(metrics);
}

/* A damaged message writes nowhere else. */
static void test_unknown_number(void **state)
{
	struct metrics *metrics = make(0);

	(void)state;
	interval(metrics, 7, 1, 1);
	assert_int_equal(count_of(metrics, "memtoll_toll_seconds_total{"), 0);
	finish(metrics);
}

/* Who stays goes on counting; who is gone is told no more, though a recording still knows it. */
static void test_other_targets(void **state)
{
	struct target_set *others = target_set_new();
	struct metrics *metrics = make(0);
	guint i;

	(void)state;
	interval(metrics, 0, 1, 0);
	interval(metrics, 1, 2, 0);
	for (i = 0; i < TARGETS_MAX - 1; i++) {
		g_autofree char *name = g_strdup_printf("other%u", i);

		assert_true(target_set_add_name(others, name));
	}
	assert_true(target_set_add_name(others, "redis-server"));
	assert_true(target_set_become(targets, others));
	metrics_set_targets(metrics, targets);
	assert_int_equal(metrics->targets->len, TARGETS_MAX);
	assert_int_equal(count_of(metrics, "a \\\"quoted"), 0);
	interval(metrics, 1, 4, 0);
	interval(metrics, 0, 8, 0);
	interval(metrics, 2, 16, 0);
	assert_has(metrics, "\nmemtoll_toll_seconds_total{target=\"redis-server\","
			    "toll=\"zero.kernel\"} 9\n");
	assert_has(metrics, "\nmemtoll_toll_seconds_total{target=\"other0\","
			    "toll=\"zero.kernel\"} 16\n");
	assert_int_equal(count_of(metrics, "memtoll_toll_seconds_total{"), 4);
	target_set_free(others);
	finish(metrics);
}

static void test_file(void **state)
{
	g_autofree char *directory = g_dir_make_tmp("memtoll-metrics-XXXXXX", NULL);
	g_autofree char *path = g_build_filename(directory, "memtoll.prom", NULL), *read = NULL;
	g_autoptr(GString) text = g_string_new("# EOF\n");
	struct stat status;

	(void)state;
	assert_int_equal(openmetrics_file(path, text), 0);
	g_string_prepend(text, "# of the second time\n");
	assert_int_equal(openmetrics_file(path, text), 0);
	assert_true(g_file_get_contents(path, &read, NULL, NULL));
	assert_string_equal(read, text->str);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0644);
	assert_int_equal(openmetrics_file("/nowhere/memtoll.prom", text), -ENOENT);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(directory), 0); /* nothing else was left there */
}

static void test_json(void **state)
{
	struct metrics *metrics = make(0);
	g_autofree char *line = NULL;
	size_t size;
	FILE *out;

	(void)state;
	interval(metrics, 1, 0.5, 1);
	out = open_memstream(&line, &size);
	assert_int_equal(json_line(out, metrics, "a\"b"), 0);
	fclose(out);
	assert_non_null(strstr(line, "\"recording\":\"a\\\"b\""));
	assert_non_null(strstr(line, "\"swap.in\":{\"time_s\":1.000000000,\"share\":0.500000}"));
	assert_true(g_str_has_suffix(line, "\"losses\":{}}\n"));
	finish(metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_corrections),
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_counters_grow),
		cmocka_unit_test(test_places_are_bounded),
		cmocka_unit_test(test_names_end_no_line),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_unknown_number),
		cmocka_unit_test(test_other_targets),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
