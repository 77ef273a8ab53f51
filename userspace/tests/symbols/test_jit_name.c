// SPDX-License-Identifier: GPL-2.0
/* Names of compiled code, as runtimes write them: function, script and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "symbols/jit_name.h"

static void test_names(void **state)
{
	static const struct {
		const char *name, *function, *file;
		uint32_t line;
	} table[] = {
		{ "JS:*fill /srv/my app/b.js:17:20", "fill", "/srv/my app/b.js", 17 },
		{ "JS:~ /srv/b.js:1:1", "(anonymous)", "/srv/b.js", 1 },
		{ "LazyCompile:~go file:///srv/b.mjs:3:9", "go", "/srv/b.mjs", 3 },
		{ "JS:^fill node:buffer:1027:38", "fill", "node:buffer", 1027 },
		{ "byte[] B.make(int, java.lang.String)", "B.make(int, java.lang.String)", "", 0 },
		{ "void java.util.Arrays.fill(byte[])", "java.util.Arrays.fill(byte[])", "", 0 },
		/* As they are. */
		{ "Builtin:ArrayFill", "Builtin:ArrayFill", "", 0 },
		{ "JS:*fill", "JS:*fill", "", 0 },
		{ "JS:*fill /srv/b.js:17", "JS:*fill /srv/b.js:17", "", 0 },
		{ "JS:*fill /srv/b.js:17:1234567890", "JS:*fill /srv/b.js:17:1234567890", "", 0 },
		{ "JS:*", "JS:*", "", 0 },
		{ "JS:* :1:1", "(anonymous)", "", 1 },
		{ "new_type_array Runtime1 stub", "new_type_array Runtime1 stub", "", 0 },
		{ "StubRoutines (1)", "StubRoutines (1)", "", 0 },
		{ "operator (a.b)", "operator (a.b)", "", 0 },
		{ "", "", "", 0 },
	};
	struct jit_name into = { .function = g_string_new(NULL), .file = g_string_new(NULL) };
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(table); i++) {
		jit_name_split(table[i].name, &into);
		assert_string_equal(into.function->str, table[i].function);
		assert_string_equal(into.file->str, table[i].file);
		assert_int_equal(into.line, table[i].line);
	}
	g_string_free(into.function, true);
	g_string_free(into.file, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
