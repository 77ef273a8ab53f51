/* SPDX-License-Identifier: GPL-2.0 */
/* said.h: what the code under test writes to stderr. */
#ifndef MEMTOLL_TEST_SAID_H
#define MEMTOLL_TEST_SAID_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* stderr goes to a file between these two; the second gives what came. */
static int saved_stderr = -1;
static FILE *captured;

static inline void capture_stderr(void)
{
	captured = tmpfile();
	assert_non_null(captured);
	fflush(stderr);
	saved_stderr = dup(STDERR_FILENO);
	dup2(fileno(captured), STDERR_FILENO);
}

static inline char *captured_stderr(void)
{
	char text[4096];
	size_t length;

	fflush(stderr);
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	rewind(captured);
	length = fread(text, 1, sizeof(text) - 1, captured);
	text[length] = '\0';
	fclose(captured);
	return g_strdup(text);
}

/* One line, of the tool, that holds each of the words (NULL-terminated). */
static inline void assert_one_line(char *text, ...)
{
	const char *word;
	va_list words;

	assert_true(g_str_has_prefix(text, "memtoll: "));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	va_start(words, text);
	while ((word = va_arg(words, const char *)))
		if (!strstr(text, word))
			fail_msg("'%s' is not in: %s", word, text);
	va_end(words);
	g_free(text);
}

#endif /* MEMTOLL_TEST_SAID_H */
