// SPDX-License-Identifier: GPL-2.0
/* test_json_out.c: a reader that is slow, and one that is gone. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "watch/json_out.h"

#define LINE 9973 /* with its end; no part of a pipe's page */

static void make_line(char *line, unsigned int number)
{
	memset(line, 'a' + (int)(number % 26), LINE - 1);
	line[LINE - 1] = '\n';
}

/* Nobody reads: each call returns, and lines are left out when the bound is reached. */
static void test_slow_reader(void **state)
{
	g_autoptr(GString) got = g_string_new("");
	unsigned int added = 0, left_out = 0, i;
	char line[LINE], wanted[LINE];
	struct json_out *out;
	int ends[2], err;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	out = json_out_new(ends[1]);
	for (i = 0; i < 2 * JSON_OUT_KEPT / LINE; i++) {
		make_line(line, added);
		err = json_out_add(out, line, sizeof(line));
		assert_true(!err || err == -ENOBUFS);
		added += !err;
		left_out += err != 0;
	}
	assert_true(left_out > 0 && added >= JSON_OUT_KEPT / LINE);
	/* All that were taken come, whole, in their order. */
	while (got->len < (size_t)added * LINE) {
		ssize_t size = read(ends[0], line, sizeof(line));

		assert_true(size > 0);
		g_string_append_len(got, line, size);
		assert_int_equal(json_out_flush(out), 0);
	}
	for (i = 0; i < added; i++) {
		make_line(wanted, i);
		assert_memory_equal(got->str + (size_t)i * LINE, wanted, LINE);
	}
	json_out_free(out);
	close(ends[0]);
	close(ends[1]);
}

static void test_no_reader(void **state)
{
	struct json_out *out;
	int ends[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	close(ends[0]);
	out = json_out_new(ends[1]);
	assert_int_equal(json_out_add(out, "{}\n", 3), -EPIPE);
	json_out_free(out);
	close(ends[1]);
	assert_null(json_out_open("/dev/null/none"));
	assert_int_equal(errno, ENOTDIR);
}

/* It is no reason to give up. */
static void test_full_disk(void **state)
{
	struct json_out *out = json_out_open("/dev/full");
	static char line[LINE];
	unsigned int i;

	(void)state;
	assert_non_null(out);
	for (i = 0; i < JSON_OUT_KEPT / LINE; i++)
		assert_int_equal(json_out_add(out, line, sizeof(line)), 0);
	assert_int_equal(json_out_add(out, line, sizeof(line)), -ENOBUFS);
	json_out_free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_no_reader),
		cmocka_unit_test(test_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
