// SPDX-License-Identifier: GPL-2.0
/*
 * report_brief.c: the diagnosis in so many tokens. Tokenizers differ and none is asked: each token
 * stands for one byte at least, in all that split text (byte pairs, unigrams with bytes to fall back
 * on, word pieces), and one more is what some put before a text. So a text of N - 1 bytes has N
 * tokens at most. It is ASCII, as characters beyond may be made several of before they are split.
 */
#include <glib.h>
#include <string.h>

#include "base/text.h"
#include "report/report.h"
#include "report/report_page.h"
#include "report/report_views.h"

/* What is said of those left out; the keys are ours. */
#define LEFT_OUT "left_out: %s\n"

/* As the package's visible(): what is no printable ASCII as its escape. */
static char *ascii(const char *text)
{
	GString *plain = g_string_new(NULL);
	const char *at = text ? text : "";
	gunichar c;

	for (; *at; at = g_utf8_next_char(at)) {
		c = g_utf8_get_char(at);
		if (c >= ' ' && c <= '~')
			g_string_append_c(plain, (char)c);
		else if (c < 0x10000)
			g_string_append_printf(plain, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
		else
			g_string_append_printf(plain, "\\U%08x", c);
	}
	return g_string_free(plain, FALSE);
}

/* The bytes that a line takes which names the keys from this one on. */
static size_t left_out_bytes(const GPtrArray *keys, guint from)
{
	size_t bytes = 0;
	guint i;

	for (i = from; i < keys->len; i++)
		bytes += strlen(g_ptr_array_index(keys, i)) + (i > from ? 1 : 0);
	return bytes ? strlen(LEFT_OUT) - 2 + bytes : 0;
}

static void print_lines(const GPtrArray *keys, const GPtrArray *lines, size_t bytes, FILE *out)
{
	size_t used = 0;
	guint i, k;

	for (i = 0; i < lines->len; i++) {
		const char *line = g_ptr_array_index(lines, i);

		if (used + strlen(line) + left_out_bytes(keys, i + 1) > bytes)
			break;
		used += strlen(line);
		fputs(line, out);
	}
	if (i < lines->len) {
		g_autoptr(GString) names = g_string_new(NULL);

		for (k = i; k < keys->len; k++)
			g_string_append_printf(names, "%s%s", k > i ? " " : "",
					       (const char *)g_ptr_array_index(keys, k));
		fprintf(out, LEFT_OUT, names->str);
	}
}

int report_brief(sqlite3 *database, unsigned int tokens, FILE *out)
{
	g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
	struct page page = { .database = database, .out = out };
	sqlite3_stmt *row;
	int err;

	err = report_views_make(database, "brief_short", 0);
	if (err)
		return err;
	row = page_query(&page, "SELECT key, text FROM temp.brief_short ORDER BY position");
	while (page_next(&page, row)) {
		g_autofree char *key = page_column(row, 0), *text = page_column(row, 1);
		g_autofree char *plain = ascii(text);

		g_ptr_array_add(lines, g_strdup_printf("%s: %s\n", key, plain));
		g_ptr_array_add(keys, g_steal_pointer(&key));
	}
	if (page.err)
		return page.err;
	print_lines(keys, lines, tokens - 1, out);
	return report_flush(out);
}
