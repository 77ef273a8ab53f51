// SPDX-License-Identifier: GPL-2.0
/*
 * finding_markdown.c: findings for a pull request. Names come from traced programs, and whoever reads
 * the page trusts who posted it: what is quoted stands in code spans, where nothing is a link, a
 * mention or markup, and sentences have what Markdown obeys escaped.
 */
#include <string.h>

#include "base/text.h"
#include "report/finding.h"

/*
 * CommonMark 0.31, 2.4 and 4.6. GitLab makes no reference of what has a backslash; GitHub looks for
 * them in what has been rendered, and there a comment parts a mention, a number and a link.
 */
static void put_prose(FILE *out, const char *text)
{
	g_autofree char *shown = text_printable(text ? text : "");
	const char *at;

	for (at = shown; *at; at++) {
		if (*at == '<')
			fputs("&lt;", out);
		else if (*at == '>')
			fputs("&gt;", out);
		else if (*at == '@' || *at == '#')
			fprintf(out, "\\%c<!-- -->", *at);
		else if (strchr("\\`*_{}[]|~!$&^", *at) || (*at == '%' && at[1] != ' '))
			fprintf(out, "\\%c", *at);
		else if (g_str_has_prefix(at, "//"))
			fputs("/<!-- -->", out);
		else if (!g_ascii_strncasecmp(at, "www.", 4))
			fprintf(out, "%c<!-- -->", *at);
		else
			fputc(*at, out);
	}
}

/* The fence is longer than any row of backticks in it (6.1); of a table's cell bars end it (GFM 4.10). */
static void put_code(FILE *out, const char *text, bool in_table)
{
	g_autofree char *shown = text_printable(text);
	unsigned int longest = 0, row = 0, i;
	const char *at;

	if (!*shown)
		return;
	for (at = shown; *at; at++) {
		row = *at == '`' ? row + 1 : 0;
		longest = MAX(longest, row);
	}
	for (i = 0; i <= longest; i++)
		fputc('`', out);
	/* A blank on either side is taken off, and so stands between backticks. */
	if (longest || *shown == ' ')
		fputc(' ', out);
	for (at = shown; *at; at++) {
		if (in_table && *at == '|')
			fputc('\\', out);
		fputc(*at, out);
	}
	if (longest || *shown == ' ')
		fputc(' ', out);
	for (i = 0; i <= longest; i++)
		fputc('`', out);
}

static void put_place(FILE *out, const struct finding *finding, bool in_table)
{
	g_autofree char *path = finding->file ? finding_path(finding->file) : NULL;
	g_autofree char *place = NULL;

	if (!path)
		return;
	place = finding->line ? g_strdup_printf("%s:%u", path, finding->line) : g_strdup(path);
	put_code(out, place, in_table);
}

static void put_row(FILE *out, const struct finding *finding, guint number)
{
	g_autofree char *site = text_printable(finding->site);

	fprintf(out, "| %u | ", number);
	if (finding->failed)
		fputs("**over** ", out);
	put_prose(out, finding->title);
	fputs(" | ", out);
	text_cut(site, FINDING_SITE_COLUMNS);
	put_code(out, site, true);
	if (finding->file)
		fputs("<br>", out);
	put_place(out, finding, true);
	fputs(" | ", out);
	put_prose(out, finding->before);
	fputs(" | ", out);
	put_prose(out, finding->after);
	fputs(" |\n", out);
}

static void put_commands(FILE *out, const GPtrArray *commands)
{
	g_autoptr(GString) lines = g_string_new(NULL);
	unsigned int longest = 2, row = 0, i;
	const char *at;

	for (i = 0; i < commands->len; i++) {
		g_autofree char *shown = text_printable(g_ptr_array_index(commands, i));

		g_string_append_printf(lines, "%s\n", shown);
	}
	for (at = lines->str; *at; at++) {
		row = *at == '`' ? row + 1 : 0;
		longest = MAX(longest, row);
	}
	fputs("\nAgain:\n\n", out);
	for (i = 0; i <= longest; i++)
		fputc('`', out);
	fprintf(out, "sh\n%s", lines->str);
	for (i = 0; i <= longest; i++)
		fputc('`', out);
	fputc('\n', out);
}

void finding_print_markdown(const struct finding_list *list, FILE *out)
{
	guint shown = MIN(list->findings->len, FINDINGS_SHOWN), i;
	bool reasons = false;

	fputs("### ", out);
	put_prose(out, list->title);
	fputs("\n\n", out);
	put_prose(out, list->summary);
	fputc('\n', out);
	if (shown)
		fputs("\n| | what | where | before | after |\n|--:|---|---|--:|--:|\n", out);
	for (i = 0; i < shown; i++) {
		const struct finding *finding = g_ptr_array_index(list->findings, i);

		put_row(out, finding, i + 1);
		reasons |= finding->reason != NULL;
	}
	if (list->findings->len > shown)
		fprintf(out, "\nand %u more\n", list->findings->len - shown);
	if (reasons)
		fputs("\nLikely why:\n\n", out);
	for (i = 0; i < shown; i++) {
		const struct finding *finding = g_ptr_array_index(list->findings, i);

		if (!finding->reason)
			continue;
		fprintf(out, "%u. ", i + 1);
		put_prose(out, finding->reason);
		fputc('\n', out);
	}
	if (list->notes->len)
		fputc('\n', out);
	for (i = 0; i < list->notes->len; i++) {
		fputs("- ", out);
		put_prose(out, g_ptr_array_index(list->notes, i));
		fputc('\n', out);
	}
	if (list->reproduce->len)
		put_commands(out, list->reproduce);
}
