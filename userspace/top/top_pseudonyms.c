// SPDX-License-Identifier: GPL-2.0
#include "top/top_pseudonyms.h"

#include <glib.h>
#include <string.h>

#define KEPT_MOST 20000

struct top_pseudonyms {
	GHashTable *numbers; /* "kind name" -> number */
	GHashTable *last;    /* kind -> the last number, of those that are forgotten as well */
};

struct top_pseudonyms *top_pseudonyms_new(void)
{
	struct top_pseudonyms *pseudonyms = g_new0(struct top_pseudonyms, 1);

	pseudonyms->numbers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	pseudonyms->last = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	return pseudonyms;
}

void top_pseudonyms_free(struct top_pseudonyms *pseudonyms)
{
	if (!pseudonyms)
		return;
	g_hash_table_destroy(pseudonyms->numbers);
	g_hash_table_destroy(pseudonyms->last);
	g_free(pseudonyms);
}

static guint number_of(struct top_pseudonyms *pseudonyms, const char *kind, const char *name)
{
	g_autofree char *key = g_strdup_printf("%s %s", kind, name);
	guint number = GPOINTER_TO_UINT(g_hash_table_lookup(pseudonyms->numbers, key));

	if (number)
		return number;
	if (g_hash_table_size(pseudonyms->numbers) >= KEPT_MOST)
		g_hash_table_remove_all(pseudonyms->numbers);
	number = GPOINTER_TO_UINT(g_hash_table_lookup(pseudonyms->last, kind)) + 1;
	g_hash_table_replace(pseudonyms->last, g_strdup(kind), GUINT_TO_POINTER(number));
	g_hash_table_insert(pseudonyms->numbers, g_steal_pointer(&key), GUINT_TO_POINTER(number));
	return number;
}

char *top_pseudonym(struct top_pseudonyms *pseudonyms, const char *kind, const char *name)
{
	if (!pseudonyms)
		return g_strdup(name);
	return g_strdup_printf("%s-%u", kind, number_of(pseudonyms, kind, name));
}

char *top_pseudonym_file(struct top_pseudonyms *pseudonyms, const char *base)
{
	static const char *const suffixes[] = { ".c",  ".h",  ".cc", ".cpp", ".cxx",  ".hpp",
						".py", ".rs", ".go", ".js",  ".java", ".so" };
	g_autofree char *name = NULL;
	size_t i;

	if (!pseudonyms)
		return g_strdup(base);
	name = top_pseudonym(pseudonyms, "file", base);
	for (i = 0; i < G_N_ELEMENTS(suffixes); i++)
		if (g_str_has_suffix(base, suffixes[i]))
			return g_strconcat(name, suffixes[i], NULL);
	return g_steal_pointer(&name);
}

char *top_pseudonym_function(struct top_pseudonyms *pseudonyms, const char *function)
{
	if (!pseudonyms || !strchr(function, '/'))
		return g_strdup(function);
	return top_pseudonym(pseudonyms, "function", function);
}

char *top_pseudonym_area(struct top_pseudonyms *pseudonyms, const char *area)
{
	const char *blank = strchr(area, ' ');
	g_autofree char *what = NULL, *name = NULL;

	if (!pseudonyms || !blank)
		return g_strdup(area);
	what = g_strndup(area, blank - area);
	name = top_pseudonym(pseudonyms, !strcmp(what, "stack") ? "program" : "file", blank + 1);
	return g_strdup_printf("%s %s", what, name);
}
