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

static struct kernel_function found(const char *path, const char *name)
{
	struct kernel_function function = { .name = name, .start = 1, .end = 1 };

	kallsyms_find(path, &function, 1);
	return function;
}

static void test_own_kernel(void **state)
{
	struct kernel_function both[] = { { .name = "no such function" },
					  { .name = "handle_mm_fault" } };
	uint64_t wanted = address_by_grep("handle_mm_fault");

	(void)state;
	kallsyms_find(NULL, both, 2);
	assert_int_equal(both[0].start, 0);
	assert_int_equal(both[0].end, 0);
	assert_int_equal(both[1].start, wanted);
	if (wanted)
		assert_true(both[1].end > wanted && both[1].end - wanted < 65536);
}

static void test_table(void **state)
{
	static const char traced[] = "ffffffff81000000 T first\nffffffff81001000 T second\n"
				     "ffffffffc0000100 t bpf_prog_1_own\t[bpf]\n"
				     "ffffffff81000800 t behind\n";
	static const char hidden[] = "0000000000000000 T _text\n0000000000000000 t handle_it\n";
	static const char table[] = "ffffffff81000000 T _text\n"
				    "ffffffffc0000100 t same\t[module]\n"
				    "ffffffffc0000200 t only\t[module]\n"
				    "ffffffff81002000 t same\n"
				    "ffffffff81001000 t alias\n"
				    "ffffffff81001000 T open_it\n"
				    "ffffffff81003000 D data\n"
				    "ffffffff81002800 t same\n"
				    "what is this\nffffffff81004000\nffffffff81005000 t\n"
				    "ffffffff81006000 t last";
	char path[] = "/tmp/kallsyms-test-XXXXXX";

	(void)state;
	close(mkstemp(path));
	write_file(path, table);
	assert_int_equal(found(path, "alias").start, 0xffffffff81001000);
	assert_int_equal(found(path, "alias").end, 0xffffffff81002000);
	assert_int_equal(found(path, "open_it").start, 0xffffffff81001000);
	assert_int_equal(found(path, "open_it").end, 0xffffffff81002000);
	/* The kernel's own, the first of two. */
	assert_int_equal(found(path, "same").start, 0xffffffff81002000);
	assert_int_equal(found(path, "same").end, 0xffffffff81002800);
	/* Data is no function; the last function of all is cut at the limit. */
	assert_int_equal(found(path, "data").start, 0);
	assert_int_equal(found(path, "only").start, 0xffffffffc0000200);
	assert_int_equal(found(path, "only").end, 0xffffffffc0000200 + 256 * 1024);
	assert_int_equal(found(path, "last").start, 0xffffffff81006000);

	/* BPF's symbols are not read. */
	write_file(path, traced);
	assert_int_equal(found(path, "first").end, 0xffffffff81001000);
	assert_int_equal(found(path, "bpf_prog_1_own").start, 0);
	assert_int_equal(found(path, "behind").start, 0);

	write_file(path, hidden);
	assert_int_equal(found(path, "handle_it").start, 0);
	unlink(path);
	assert_int_equal(found("/no/such/table", "_text").start, 0);
}

/* What ends in the middle of a line is read on: the table is longer than what is read at once. */
static void test_long_table(void **state)
{
	char path[] = "/tmp/kallsyms-test-XXXXXX";
	FILE *file;
	int i;

	(void)state;
	close(mkstemp(path));
	file = fopen(path, "we");
	assert_non_null(file);
	for (i = 0; i < 20000; i++)
		fprintf(file, "%016llx t function_%d\n", 0xffffffff81000000ULL + 16 * i, i);
	fclose(file);
	for (i = 0; i < 20000; i += 1999) {
		char name[32];

		snprintf(name, sizeof(name), "function_%d", i);
		assert_int_equal(found(path, name).start, 0xffffffff81000000ULL + 16 * i);
		assert_int_equal(found(path, name).end, 0xffffffff81000000ULL + 16 * (i + 1));
	}
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_kernel),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_long_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
