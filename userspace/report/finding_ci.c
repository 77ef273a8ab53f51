// SPDX-License-Identifier: GPL-2.0
/*
 * finding_ci.c: findings for CI servers. JUnit's XML has no standard; what is written is what Jenkins'
 * and GitLab's readers share. GitHub: "Workflow commands", docs.github.com.
 */
#include <string.h>

#include "base/text.h"
#include "report/finding.h"

char *finding_sentence(const struct finding *finding)
{
	return g_strdup_printf("%s: %s -> %s.%s%s", finding->site ? finding->site : finding->title,
			       finding->before, finding->after, finding->reason ? " " : "",
			       finding->reason ? finding->reason : "");
}

/* XML 1.0 has no controls, not even as references, and no U+FFFE and U+FFFF. */
static char *xml(const char *text)
{
	g_autofree char *shown = text_printable(text ? text : "");
	g_autofree char *marked = NULL;
	char *at;

	for (at = shown; (at = strstr(at, "\357\277")); at += 3)
		if ((unsigned char)at[2] >= 0xbe)
			memcpy(at, "???", 3);
	marked = g_markup_escape_text(shown, -1);
	return g_steal_pointer(&marked);
}

static void put_attribute(FILE *out, const char *name, const char *text)
{
	g_autofree char *value = xml(text);

	fprintf(out, " %s=\"%s\"", name, value);
}

static void put_case(FILE *out, const struct finding *finding)
{
	g_autofree char *said = finding_sentence(finding), *text = xml(said);
	g_autofree char *path = finding->file ? finding_path(finding->file) : NULL;

	fputs("    <testcase", out);
	put_attribute(out, "classname", "memtoll");
	put_attribute(out, "name", finding->key);
	if (path)
		put_attribute(out, "file", path);
	if (path && finding->line)
		fprintf(out, " line=\"%u\"", finding->line);
	fputs(">\n      <failure", out);
	put_attribute(out, "type", finding->failed ? "over" : "grew");
	put_attribute(out, "message", finding->title);
	fprintf(out, ">%s%s", text, path ? " " : "");
	if (path) {
		g_autofree char *where = finding->line ?
						 g_strdup_printf("(%s:%u)", path, finding->line) :
						 g_strdup_printf("(%s)", path);
		g_autofree char *escaped = xml(where);

		fputs(escaped, out);
	}
	fputs("</failure>\n    </testcase>\n", out);
}

void finding_print_junit(const struct finding_list *list, FILE *out)
{
	/* What held is one case, of one name in all runs: a server shows that it was looked at. */
	guint failures = list->findings->len, tests = failures + 1, i;
	g_autofree char *summary = xml(list->summary);

	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
	fprintf(out, "<testsuites name=\"memtoll\" tests=\"%u\" failures=\"%u\" errors=\"0\">\n",
		tests, failures);
	fputs("  <testsuite", out);
	put_attribute(out, "name", list->title);
	fprintf(out, " tests=\"%u\" failures=\"%u\" errors=\"0\" skipped=\"0\">\n", tests,
		failures);
	for (i = 0; i < failures; i++)
		put_case(out, g_ptr_array_index(list->findings, i));
	fputs("    <testcase classname=\"memtoll\" name=\"all others\"/>\n", out);
	fprintf(out, "    <system-out>%s\nall others: %u", summary,
		list->checked > failures ? list->checked - failures : 0);
	for (i = 0; i < list->notes->len; i++) {
		g_autofree char *note = xml(g_ptr_array_index(list->notes, i));

		fprintf(out, "\n%s", note);
	}
	for (i = 0; i < list->reproduce->len; i++) {
		g_autofree char *command = xml(g_ptr_array_index(list->reproduce, i));

		fprintf(out, "\n%s: %s", i ? "then" : "again", command);
	}
	fputs("</system-out>\n  </testsuite>\n</testsuites>\n", out);
}

/* Percent, and in properties what ends one; line ends are gone with the other controls. */
static char *command_text(const char *text, bool property)
{
	g_autofree char *shown = text_printable(text ? text : "");
	GString *escaped = g_string_new(NULL);
	const char *at;

	for (at = shown; *at; at++) {
		if (*at == '%' || (property && (*at == ':' || *at == ',')))
			g_string_append_printf(escaped, "%%%02X", (unsigned int)*at);
		else
			g_string_append_c(escaped, *at);
	}
	return g_string_free(escaped, FALSE);
}

void finding_print_github(const struct finding_list *list, FILE *out)
{
	g_autofree char *head = command_text(list->title, true);
	g_autofree char *summary = command_text(list->summary, false);
	guint i;

	for (i = 0; i < list->findings->len; i++) {
		const struct finding *finding = g_ptr_array_index(list->findings, i);
		g_autofree char *path = finding->file ? finding_path(finding->file) : NULL;
		g_autofree char *file = command_text(path, true), *said = finding_sentence(finding);
		g_autofree char *title = command_text(finding->title, true);
		g_autofree char *text = command_text(said, false);

		fprintf(out, "::%s ", finding->failed ? "error" : "warning");
		if (*file)
			fprintf(out, "file=%s,", file);
		if (*file && finding->line)
			fprintf(out, "line=%u,", finding->line);
		fprintf(out, "title=memtoll%%3A %s::%s\n", title, text);
	}
	for (i = 0; i < list->notes->len; i++) {
		g_autofree char *note = command_text(g_ptr_array_index(list->notes, i), false);

		fprintf(out, "::notice title=memtoll::%s\n", note);
	}
	fprintf(out, "::notice title=%s::%s\n", head, summary);
}
