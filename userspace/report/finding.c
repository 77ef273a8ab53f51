// SPDX-License-Identifier: GPL-2.0
#include "report/finding.h"

#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "report/report_views.h"

static void finding_free(void *data)
{
	struct finding *finding = data;

	g_free(finding->title);
	g_free(finding->site);
	g_free(finding->file);
	g_free(finding->before);
	g_free(finding->after);
	g_free(finding->reason);
	g_free(finding->key);
	g_free(finding);
}

struct finding_list *finding_list_new(void)
{
	struct finding_list *list = g_new0(struct finding_list, 1);

	list->findings = g_ptr_array_new_with_free_func(finding_free);
	list->notes = g_ptr_array_new_with_free_func(g_free);
	list->reproduce = g_ptr_array_new_with_free_func(g_free);
	return list;
}

void finding_list_free(struct finding_list *list)
{
	if (!list)
		return;
	g_ptr_array_unref(list->findings);
	g_ptr_array_unref(list->notes);
	g_ptr_array_unref(list->reproduce);
	g_free(list->title);
	g_free(list->summary);
	g_free(list);
}

struct finding *finding_add(struct finding_list *list)
{
	struct finding *finding = g_new0(struct finding, 1);

	g_ptr_array_add(list->findings, finding);
	return finding;
}

void finding_note(struct finding_list *list, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	g_ptr_array_add(list->notes, g_strdup_vprintf(format, arguments));
	va_end(arguments);
}

bool finding_format_parse(const char *name, enum finding_format *format)
{
	static const char *const names[] = {
		[FINDING_TEXT] = "text",     [FINDING_MARKDOWN] = "markdown",
		[FINDING_JUNIT] = "junit",   [FINDING_GITHUB] = "github",
		[FINDING_GITLAB] = "gitlab",
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(names); i++)
		if (!strcmp(name, names[i])) {
			*format = (enum finding_format)i;
			return true;
		}
	return false;
}

char *finding_path(const char *file)
{
	g_autofree char *here = g_get_current_dir();
	const char *const roots[] = { g_getenv("GITHUB_WORKSPACE"), g_getenv("CI_PROJECT_DIR"),
				      here };
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(roots); i++) {
		size_t length = roots[i] ? strlen(roots[i]) : 0;

		while (length > 1 && roots[i][length - 1] == '/')
			length--;
		if (length > 1 && !strncmp(file, roots[i], length) && file[length] == '/' &&
		    file[length + 1])
			return g_strdup(file + length + 1);
	}
	return g_strdup(g_str_has_prefix(file, "./") ? file + 2 : file);
}

/* "parse.c:88", "parse.c" or "". */
static char *place_of(const struct finding *finding)
{
	g_autofree char *path = finding->file ? finding_path(finding->file) : NULL;

	if (!path)
		return g_strdup("");
	return finding->line ? g_strdup_printf("%s:%u", path, finding->line) : g_strdup(path);
}

/* Lines of at most 80 columns; nothing where there is no text. */
static void print_part(FILE *out, const char *prefix, int indent, const char *text)
{
	g_autofree char *shown = text ? text_printable(text) : NULL;

	if (shown && *shown)
		text_wrap_to(out, TEXT_WIDTH, prefix, indent, shown);
}

static void print_text(const struct finding_list *list, FILE *out)
{
	guint i;

	print_part(out, "", 0, list->title);
	print_part(out, "", 0, list->summary);
	for (i = 0; i < MIN(list->findings->len, FINDINGS_SHOWN); i++) {
		const struct finding *finding = g_ptr_array_index(list->findings, i);
		g_autofree char *place = place_of(finding), *what = NULL, *figures = NULL;
		g_autofree char *site = text_printable(finding->site);

		text_cut(site, FINDING_SITE_COLUMNS);
		what = g_strdup_printf("%s%s%s", finding->title, *site ? ": " : "", site);
		figures = g_strdup_printf("%s -> %s%s%s", finding->before, finding->after,
					  *place ? "   at " : "", place);
		fputc('\n', out);
		print_part(out, finding->failed ? "FAILED " : "", 4, what);
		print_part(out, "    ", 4, figures);
		print_part(out, "    likely: ", 12, finding->reason);
	}
	if (list->findings->len > FINDINGS_SHOWN)
		fprintf(out, "\nand %u more\n", list->findings->len - FINDINGS_SHOWN);
	if (list->notes->len)
		fputc('\n', out);
	for (i = 0; i < list->notes->len; i++)
		print_part(out, "! ", 2, g_ptr_array_index(list->notes, i));
	for (i = 0; i < list->reproduce->len; i++) {
		g_autofree char *command = text_printable(g_ptr_array_index(list->reproduce, i));

		fprintf(out, "%s: %s\n", i ? " then" : "\nagain", command);
	}
}

int finding_print(const struct finding_list *list, enum finding_format format, FILE *out)
{
	int err = 0;

	switch (format) {
	case FINDING_MARKDOWN:
		finding_print_markdown(list, out);
		break;
	case FINDING_JUNIT:
		finding_print_junit(list, out);
		break;
	case FINDING_GITHUB:
		finding_print_github(list, out);
		break;
	case FINDING_GITLAB:
		err = finding_print_gitlab(list, out);
		break;
	case FINDING_JSON:
		err = finding_print_json(list, out);
		break;
	case FINDING_TEXT:
		print_text(list, out);
		break;
	}
	return err ? err : report_flush(out);
}
