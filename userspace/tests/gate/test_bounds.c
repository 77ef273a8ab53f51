// SPDX-License-Identifier: GPL-2.0
/* test_bounds.c: what a budget's file may say, and what is made of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

#include "base/message.h"
#include "gate/bounds.h"

static char *said;

static void take_message(void *context, const char *line)
{
	(void)context;
	g_free(said);
	said = g_strdup(line);
}

/* NULL: refused, and said has why. */
static struct bounds *read_text(const char *text)
{
	g_autofree char *path = NULL;
	struct bounds *bounds;
	int fd = g_file_open_tmp("memtoll-bounds-XXXXXX.toml", &path, NULL);

	assert_true(fd >= 0);
	g_close(fd, NULL);
	assert_true(g_file_set_contents(path, text, -1, NULL));
	g_clear_pointer(&said, g_free);
	message_divert(take_message, NULL);
	bounds = bounds_read(path);
	message_divert(NULL, NULL);
	g_unlink(path);
	return bounds;
}

static void same(const struct bound *bound, const char *name, const char *of, double factor,
		 double more)
{
	assert_string_equal(bound->name, name);
	assert_string_equal(bound->of, of);
	assert_true(bound->factor > factor - 1e-9 && bound->factor < factor + 1e-9);
	assert_true(bound->more > more - 1e-9 && bound->more < more + 1e-9);
}

static void every_form(void **state)
{
	static const char text[] = "zero.libc.bytes = \"<= 10 MiB\"\n"
				   "faults.count = \"1.05 x baseline\"\n"
				   "site.\"parse_*\".alloc.calls = \"<= baseline\"\n"
				   "[family]\n"
				   "zeroing.bytes = 1000\n"
				   "mapping.calls = \"baseline + 5 % + 16\"\n"
				   "[alloc]\n"
				   "bytes = \"2*baseline + 4KiB + 1\"\n"
				   "time = \"20 ms\"\n"
				   "[observed]\n"
				   "time = \"1.1 x baseline\"\n";
	struct bounds *bounds = read_text(text);
	const struct bound *const *all;

	(void)state;
	if (!bounds) {
		fail_msg("%s", said);
		return;
	}
	all = (const struct bound *const *)bounds->list->pdata;
	assert_int_equal(bounds->list->len, 8);
	same(all[0], "zero.libc.bytes", "zero.libc", 0, 10 << 20);
	same(all[1], "faults.count", "", 1.05, 0);
	assert_int_equal(all[1]->scope, GATE_ALL_FAULTS);
	same(all[2], "site.\"parse_*\".alloc.calls", "alloc", 1, 0);
	assert_string_equal(all[2]->pattern, "parse_*");
	assert_string_equal(all[2]->said, "baseline");
	same(all[3], "family.zeroing.bytes", "zeroing", 0, 1000);
	assert_int_equal(all[3]->scope, GATE_FAMILY);
	assert_int_equal(all[3]->line, 5);
	same(all[4], "family.mapping.calls", "mapping", 1.05, 16);
	same(all[5], "alloc.bytes", "alloc", 2, 4097);
	same(all[6], "alloc.time", "alloc", 0, 0.02);
	same(all[7], "observed.time", "", 1.1, 0);
	assert_ptr_equal(bounds_against_baseline(bounds), all[1]);
	assert_ptr_equal(bounds_on_time(bounds), all[6]);
	bounds_free(bounds);
}

/* What is attached is what the bounds need. */
static void probes_of_the_bounds(void **state)
{
	static const struct {
		const char *text;
		unsigned int probes;
	} cases[] = {
		{ "alloc.calls = 1", GATE_ALLOC },
		{ "zero.libc.bytes = 1", GATE_ALLOC },
		{ "map.calls = 1", GATE_MAPPINGS },
		{ "file.read.calls = 1", GATE_READS },
		{ "zero.kernel.bytes = 1", GATE_FAULTS | GATE_MAPPINGS },
		{ "faults.count = 1", GATE_FAULTS | GATE_MAPPINGS },
		{ "site.main.faults.count = 1", GATE_FAULTS | GATE_MAPPINGS | GATE_ALLOC },
		{ "family.zeroing.bytes = 1", GATE_FAULTS | GATE_MAPPINGS | GATE_ALLOC },
		{ "file.read.calls = 1\nmap.calls = 1", GATE_READS | GATE_MAPPINGS },
		{ "alloc.time = \"1 s\"", GATE_ALL },
	};
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct bounds *bounds = read_text(cases[i].text);

		if (!bounds) {
			fail_msg("%s", said);
			return;
		}
		assert_int_equal(bounds_probes(bounds), cases[i].probes);
		bounds_free(bounds);
	}
}

static void refused(void **state)
{
	/* The file, what of it, and the words that say why. */
	static const char *const cases[][2] = {
		{ "", "no bound" },
		{ "# nothing\n[alloc]\n", "no bound" },
		{ "alloc.calls = \n", ":1: " },
		{ "[[\nalloc.calls = 1\n", ":1: " },
		{ "[[  .alloc]]\n", ":1: " },
		{ "\nalloc.calls = 1\nalloc.calls = 2\n", ":3: " },
		{ "alloc.calls = 1\xff\n", ":1: " },
		{ "alloc.weight = 1", ":1: alloc.weight: 'weight' is not count, bytes or time" },
		{ "zero.kernel.calls = 1", "'calls' is not count" },
		{ "zeros.libc.bytes = 1", "'zeros.libc' is no toll" },
		{ "family.none.bytes = 1", "'family.none' is no toll" },
		{ "bytes = 1", "say what is bounded" },
		{ "site = 1", "a site has a pattern" },
		{ "site.\"\".alloc.calls = 1", "a site has a pattern" },
		{ "site.main = 1", "say what is bounded" },
		{ "site.main.alloc.time = \"1 s\"", "no time" },
		{ "zero.app.bytes = 1", "estimate" },
		{ "compute.count = 1", "estimate" },
		{ "family.compute.count = 1", "estimate" },
		{ "observed.bytes = 1", "no count" },
		{ "faults.time = \"1 s\"", "in their tolls" },
		{ "alloc.calls = -1", "'-1' is no bound" },
		{ "alloc.calls = \"10 MiB\"", "is no bound" },
		{ "alloc.calls = 1.5", "that is no bound" },
		{ "alloc.calls = [1]", "that is no bound" },
		{ "alloc.calls = true", "that is no bound" },
		{ "alloc.bytes = \"10 stones\"", "is no bound" },
		{ "alloc.bytes = \"\"", "is no bound" },
		{ "alloc.bytes = \"baseline + baseline\"", "is no bound" },
		{ "alloc.bytes = \"-1 x baseline\"", "is no bound" },
		{ "alloc.bytes = \"0 x baseline\"", "is no bound" },
		{ "alloc.bytes = \"1e999 x baseline\"", "is no bound" },
		{ "alloc.bytes = \"5 %\"", "is no bound" },
		{ "alloc.bytes = \">= 5\"", "is no bound" },
		{ "alloc.bytes = \"1e10 x baseline\"", "is no bound" },
		{ "alloc.calls = 9223372036854775807", "is no bound" },
		{ "alloc.bytes = \"1\\u0000 GiB\"", "that is no bound" },
		{ "\"alloc\\u0000x\".calls = 1", "is no toll" },
		{ "alloc.time = 5", "is no bound" },
		{ "alloc.time = \"5\"", "is no bound" },
		{ "alloc.time = \"baseline + 5 ms\"", "not by both" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct bounds *bounds = read_text(cases[i][0]);

		if (bounds || !said || !strstr(said, cases[i][1]))
			fail_msg("%s: %s", cases[i][0], bounds ? "taken" : said);
	}
}

/* A pattern that steers the terminal is no line of ours. */
static void names_do_not_steer(void **state)
{
	(void)state;
	assert_null(read_text("site.\"\\u001b[31m\\nx\".alloc.none = 1"));
	assert_null(strchr(said, '\x1b'));
	assert_null(strchr(said, '\n'));
}

static void missing(void **state)
{
	(void)state;
	message_divert(take_message, NULL);
	assert_null(bounds_read("/nowhere/budget.toml"));
	message_divert(NULL, NULL);
	assert_non_null(strstr(said, "/nowhere/budget.toml"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form), cmocka_unit_test(probes_of_the_bounds),
		cmocka_unit_test(refused),    cmocka_unit_test(names_do_not_steer),
		cmocka_unit_test(missing),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	g_free(said);
	return failed;
}
