// SPDX-License-Identifier: GPL-2.0
#include "base/text.h"

#include <glib.h>
#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>

/*
 * Whether a character controls the terminal or the layout: C0 and C1 controls (U+009B begins a
 * sequence as ESC does), line separators, and changes of direction (Unicode TR 36, 3.; UAX 9).
 */
static bool steers(gunichar c)
{
	return g_unichar_iscntrl(c) || c == 0x2028 || c == 0x2029 || c == 0x061c || c == 0x200e ||
	       c == 0x200f || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static bool is_character(gunichar c)
{
	return c != (gunichar)-1 && c != (gunichar)-2;
}

char *text_printable(const char *text)
{
	GString *clean = g_string_new(NULL);
	const char *at = text ? text : "";
	gunichar c;

	while (*at) {
		c = g_utf8_get_char_validated(at, -1);
		g_string_append_unichar(clean, is_character(c) && !steers(c) ? c : '?');
		at = is_character(c) ? g_utf8_next_char(at) : at + 1;
	}
	return g_string_free(clean, FALSE);
}

char *text_json(const char *json)
{
	GString *clean = g_string_new(NULL);
	const char *at = json;
	gunichar c;

	while (*at) {
		c = g_utf8_get_char_validated(at, -1);
		if (!is_character(c))
			g_string_append_unichar(clean, 0xfffd);
		else if (c >= 0x7f && steers(c))
			g_string_append_printf(clean, "\\u%04x", c);
		else
			g_string_append_unichar(clean, c);
		at = is_character(c) ? g_utf8_next_char(at) : at + 1;
	}
	return g_string_free(clean, FALSE);
}

void text_cut(char *text, long columns)
{
	columns = MAX(columns, 3);
	if (g_utf8_strlen(text, -1) > columns)
		strcpy(g_utf8_offset_to_pointer(text, columns - 3), "...");
}

void text_wrap_to(FILE *out, long columns, const char *prefix, int indent, const char *text)
{
	char **words = g_strsplit(text, " ", -1);
	long column = g_utf8_strlen(prefix, -1), length;
	bool first = true;
	size_t i;

	fputs(prefix, out);
	for (i = 0; words[i]; i++) {
		length = g_utf8_strlen(words[i], -1);
		if (!first && column + 1 + length > columns) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
			first = true;
		}
		fprintf(out, "%s%s", first ? "" : " ", words[i]);
		column += length + !first;
		first = false;
	}
	fputc('\n', out);
	g_strfreev(words);
}

void text_wrap(FILE *out, const char *prefix, int indent, const char *text)
{
	text_wrap_to(out, TEXT_WIDTH, prefix, indent, text);
}

/* Three digits in all. */
static int decimals(double value)
{
	if (value >= 99.95)
		return 0;
	return value >= 9.995 ? 1 : 2;
}

void format_time(char *text, size_t size, double ns)
{
	static const struct {
		double ns;
		const char *unit;
	} units[] = {
		{ 1e9, "s" },
		{ 1e6, "ms" },
		{ 1e3, "us" },
		{ 1, "ns" },
	};
	size_t i = 0;
	double value;

	while (i < G_N_ELEMENTS(units) - 1 && ns < units[i].ns)
		i++;
	value = ns / units[i].ns;
	snprintf(text, size, "%.*f %s", ns > 0 ? decimals(value) : 0, value, units[i].unit);
}

void format_bytes(char *text, size_t size, double bytes)
{
	static const struct {
		double bytes;
		const char *unit;
	} units[] = {
		{ 1073741824, "GiB" },
		{ 1048576, "MiB" },
		{ 1024, "KiB" },
		{ 1, "B" },
	};
	size_t i = 0;
	double value;

	while (i < G_N_ELEMENTS(units) - 1 && bytes < units[i].bytes)
		i++;
	value = bytes / units[i].bytes;
	snprintf(text, size, "%.*f %s", units[i].bytes > 1 ? decimals(value) : 0, value,
		 units[i].unit);
}

void format_share(char *text, size_t size, double share)
{
	snprintf(text, size, "%.1f %%", 100 * share);
}

void format_estimate(char *text, size_t size, int64_t number)
{
	static const struct {
		double size;
		const char *unit;
	} units[] = { { 1e9, " G" }, { 1e6, " M" }, { 1e3, " k" } };
	double value;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(units); i++) {
		/* What would be rounded to a thousand is one of the next. */
		if ((double)number < units[i].size * (i + 1 < G_N_ELEMENTS(units) ? 0.995 : 1))
			continue;
		value = (double)number / units[i].size;
		if (value >= 99.5)
			value = 10 * floor(value / 10 + 0.5);
		snprintf(text, size, "~%.*f%s", value < 9.95, value, units[i].unit);
		return;
	}
	snprintf(text, size, "%s%lld", number ? "~" : "", (long long)number);
}

void format_count(char *text, size_t size, int64_t number)
{
	char *formatted = sqlite3_mprintf("%,lld", (long long)number);

	g_strlcpy(text, formatted ? formatted : "?", size);
	sqlite3_free(formatted);
}

void format_at_least(char *text, size_t size, int64_t number)
{
	g_strlcpy(text, ">= ", size);
	format_count(text + strlen(text), size - strlen(text), number);
}

size_t text_distance(const char *a, const char *b)
{
	size_t columns = strlen(b) + 1, i, k;
	g_autofree size_t *line = g_new(size_t, columns);

	for (k = 0; k < columns; k++)
		line[k] = k;
	for (i = 1; i <= strlen(a); i++) {
		size_t diagonal = line[0];

		line[0] = i;
		for (k = 1; k < columns; k++) {
			size_t above = line[k];

			line[k] =
				MIN(MIN(above, line[k - 1]) + 1, diagonal + (a[i - 1] != b[k - 1]));
			diagonal = above;
		}
	}
	return line[columns - 1];
}
