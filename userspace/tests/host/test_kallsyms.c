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
#include "symbols/symbolize.h"

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

static void test_kernel(void **state)
{
	struct symbolizer *symbolizer = symbolizer__new();
	uint64_t wanted = address_by_grep("handle_mm_fault");
	struct frame frame;
	uint64_t begin;
	uint64_t end;

	(void)state;
	if (wanted) {
		assert_true(symbolizer_kernel_function(symbolizer, "handle_mm_fault", &begin,
						       &end));
		assert_int_equal(begin, wanted);
		assert_true(end > begin && end - begin < 65536);
		symbolizer_kernel(symbolizer, end - 1, &frame);
		assert_string_equal(frame.function, "handle_mm_fault");
		assert_string_equal(frame.module, "[kernel]");
		assert_int_equal(frame.symbol_offset, end - 1 - begin);
		assert_int_equal(frame.kind, FRAME_KERNEL);
		symbolizer_kernel(symbolizer, end, &frame);
		assert_string_not_equal(frame.function, "handle_mm_fault");
	} else {
		assert_false(symbolizer_kernel_function(symbolizer, "handle_mm_fault", &begin,
							&end));
	}
	symbolizer_kernel(symbolizer, 4099, &frame);
	assert_string_equal(frame.function, "");
	assert_string_equal(frame.module, "");
	symbolizer_kernel(symbolizer, UINT64_MAX, &frame);
	assert_string_equal(frame.function, "");
	assert_false(symbolizer_kernel_function(symbolizer, "no such function", &begin, &end));
	symbolizer__free(symbolizer);
}

static void test_kallsyms(void **state)
{
	static const char hidden[] = "0000000000000000 T _text\n0000000000000000 t handle_it\n";
	static const char table[] =
		"ffffffff81000000 T _text\n"
		"ffffffff81002000 t same\n"
		"ffffffff81001000 t alias\n"
		"ffffffff81001000 T open_it\n"
		"ffffffff81003000 D data\n"
		"what is this\nffffffff81004000\nffffffff81005000 t\n"
		"ffffffffc0000100 t same\t[module]\n"
		"ffffffffc0000200 t only\t[module]\n";
	char path[] = "/tmp/kallsyms-test-XXXXXX";
	struct kernel_symbol symbol;
	struct kallsyms *read;

	(void)state;
	close(mkstemp(path));
	write_file(path, table);
	read = kallsyms_read(path);
	assert_non_null(read);
	assert_true(kallsyms_find(read, 0xffffffff81001fff, &symbol));
	assert_string_equal(symbol.name, "open_it");
	assert_int_equal(symbol.end, 0xffffffff81002000);
	assert_true(kallsyms_named(read, "alias", &symbol));
	assert_int_equal(symbol.start, 0xffffffff81001000);
	assert_true(kallsyms_named(read, "same", &symbol));
	assert_int_equal(symbol.start, 0xffffffff81002000);
	assert_true(kallsyms_find(read, 0xffffffffc0000203, &symbol));
	assert_string_equal(symbol.name, "only");
	assert_string_equal(symbol.module, "[module]");
	assert_false(kallsyms_find(read, 0xffffffff81003001, &symbol));
	assert_false(kallsyms_find(read, 0xffffffffc1000000, &symbol));
	assert_false(kallsyms_find(read, 0xffffffff80ffffff, &symbol));
	kallsyms_free(read);

	write_file(path, hidden);
	read = kallsyms_read(path);
	assert_non_null(read);
	assert_false(kallsyms_find(read, 0, &symbol));
	assert_false(kallsyms_named(read, "handle_it", &symbol));
	kallsyms_free(read);
	assert_null(kallsyms_read("/no/such/table"));
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_kallsyms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
