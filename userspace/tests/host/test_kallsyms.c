// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE 1

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/kallsyms.h"

static void write_file(const char *path, const char *content)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(content, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* 0 where the table lacks the name or hides its addresses. */
static uint64_t address_by_grep(const char *name)
{
	char command[256];
	char line[256] = "";
	FILE *pipe;

	snprintf(command, sizeof(command), "grep -m1 ' %s$' /proc/kallsyms", name);
	pipe = popen(command, "re");
	assert_non_null(pipe);
	if (!fgets(line, sizeof(line), pipe))
		line[0] = '\0';
	pclose(pipe);
	return strtoull(line, NULL, 16);
}

static void test_own_kernel(void **state)
{
	struct kallsyms *table = kallsyms_read(NULL);
	uint64_t wanted = address_by_grep("handle_mm_fault");
	uint64_t start = 0;
	uint64_t end = 0;

	(void)state;
	assert_non_null(table);
	assert_int_equal(kallsyms_function(table, "handle_mm_fault", &start, &end), wanted != 0);
	if (wanted) {
		assert_int_equal(start, wanted);
		assert_true(end > start && end - start < 65536);
	}
	assert_false(kallsyms_function(table, "no such function", &start, &end));
	kallsyms_free(table);
}

static void test_table(void **state)
{
	static const char hidden[] = "0000000000000000 T _text\n0000000000000000 t handle_it\n";
	static const char table[] = "ffffffff81000000 T _text\n"
				    "ffffffffc0000100 t same\t[module]\n"
				    "ffffffffc0000200 t only\t[module]\n"
				    "ffffffff81002000 t same\n"
				    "ffffffff81001000 t alias\n"
				    "ffffffff81001000 T open_it\n"
				    "ffffffff81003000 D data\n"
				    "ffffffff81002800 t same\n"
				    "what is this\nffffffff81004000\nffffffff81005000 t\n";
	char path[] = "/tmp/kallsyms-test-XXXXXX";
	struct kallsyms *read;
	uint64_t start;
	uint64_t end;

	(void)state;
	close(mkstemp(path));
	write_file(path, table);
	read = kallsyms_read(path);
	assert_non_null(read);
	assert_true(kallsyms_function(read, "alias", &start, &end));
	assert_int_equal(start, 0xffffffff81001000);
	assert_int_equal(end, 0xffffffff81002000);
	assert_true(kallsyms_function(read, "open_it", &start, &end));
	assert_int_equal(start, 0xffffffff81001000);
	assert_int_equal(end, 0xffffffff81002000);
	/* The kernel's own, the first of two. */
	assert_true(kallsyms_function(read, "same", &start, &end));
	assert_int_equal(start, 0xffffffff81002000);
	assert_int_equal(end, 0xffffffff81002800);
	/* Data is no function; the last function of all is cut at the limit. */
	assert_false(kallsyms_function(read, "data", &start, &end));
	assert_true(kallsyms_function(read, "only", &start, &end));
	assert_int_equal(start, 0xffffffffc0000200);
	assert_int_equal(end, 0xffffffffc0000200 + 256 * 1024);
	kallsyms_free(read);

	write_file(path, hidden);
	read = kallsyms_read(path);
	assert_non_null(read);
	assert_false(kallsyms_function(read, "handle_it", &start, &end));
	kallsyms_free(read);
	assert_null(kallsyms_read("/no/such/table"));
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_kernel),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
