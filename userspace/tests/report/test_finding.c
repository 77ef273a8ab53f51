// SPDX-License-Identifier: GPL-2.0
/*
 * Findings that no comparison makes: over a limit, or of code that is not known. The others, and names
 * that mean ill: test_cli_baseline.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/finding.h"

static struct finding_list *list_of(bool known)
{
	struct finding_list *list = finding_list_new();
	struct finding *finding = finding_add(list);

	list->title = g_strdup("memtoll: 1 bound is broken");
	list->summary = g_strdup("budget.toml");
	list->checked = 7;
	finding->title = g_strdup("zero.libc.bytes");
	finding->before = g_strdup("limit 10.0 MiB");
	finding->after = g_strdup("31.0 MiB");
	finding->key = g_strdup("zero.libc.bytes <= 10 MiB");
	finding->failed = true;
	if (known) {
		finding->site = g_strdup("parse, by calloc");
		finding->file = g_strdup("src/parse.c");
		finding->line = 31;
		finding->reason = g_strdup("It is called more often.");
	}
	return list;
}

/* Freed by free(). */
static char *printed(enum finding_format format, bool known)
{
	struct finding_list *list = list_of(known);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(finding_print(list, format, out), 0);
	fclose(out);
	finding_list_free(list);
	return text;
}

static void test_over(void **state)
{
	static const struct {
		enum finding_format format;
		const char *has[3];
	} cases[] = {
		{ FINDING_TEXT,
		  { "FAILED zero.libc.bytes: parse, by calloc", "src/parse.c:31", "31.0 MiB" } },
		{ FINDING_MARKDOWN,
		  { "**over** zero.libc.bytes", "`src/parse.c:31`", "limit 10.0 MiB" } },
		{ FINDING_JUNIT,
		  { "type=\"over\"", "file=\"src/parse.c\" line=\"31\"", "all others: 6<" } },
		{ FINDING_GITHUB,
		  { "::error file=src/parse.c,line=31,title=memtoll%3A zero.libc.bytes::parse, by",
		    "limit 10.0 MiB -> 31.0 MiB. It is", "::notice " } },
		{ FINDING_GITLAB,
		  { "\"severity\":\"major\"", "\"path\":\"src/parse.c\"", "\"begin\":31" } },
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(cases); i++) {
		char *text = printed(cases[i].format, true);

		for (k = 0; k < G_N_ELEMENTS(cases[i].has); k++)
			assert_non_null(strstr(text, cases[i].has[k]));
		free(text);
	}
}

/* No "(null)", no file and no line that nobody knows; GitLab asks for both. */
static void test_unknown(void **state)
{
	static const char *const formats[] = { "text", "markdown", "junit", "github", "gitlab" };
	size_t i;

	(void)state;
	for (i = 0; i < G_N_ELEMENTS(formats); i++) {
		enum finding_format format;
		char *text;

		assert_true(finding_format_parse(formats[i], &format));
		text = printed(format, false);
		assert_null(strstr(text, "(null)"));
		assert_null(strstr(text, "file="));
		assert_non_null(strstr(text, "zero.libc.bytes"));
		if (format == FINDING_GITLAB)
			assert_non_null(
				strstr(text, "\"location\":{\"path\":\"zero.libc.bytes\",\"lines\":"
					     "{\"begin\":1}}"));
		free(text);
	}
}

static void test_names_of_formats(void **state)
{
	enum finding_format format = FINDING_GITHUB;

	(void)state;
	assert_false(finding_format_parse("Markdown", &format));
	assert_false(finding_format_parse("", &format));
	assert_int_equal(format, FINDING_GITHUB);
}

static void test_what_cannot_be_written(void **state)
{
	struct finding_list *list = list_of(true);
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(full);
	assert_int_not_equal(finding_print(list, FINDING_JUNIT, full), 0);
	fclose(full);
	finding_list_free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_over),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_names_of_formats),
		cmocka_unit_test(test_what_cannot_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
