// SPDX-License-Identifier: GPL-2.0
#include "cli/option_list.h"

#include <ctype.h>
#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

struct entry {
	int group;
	const struct argp_option *option;
};

static bool is_heading(const struct argp_option *option)
{
	return !option->name && !option->key;
}

/* As argp does: 0, 1, 2, ..., -2, -1; in each the heading first, then by name. */
static int compare(gconstpointer left, gconstpointer right)
{
	const struct entry *a = left, *b = right;
	bool last = a->group < 0, other_last = b->group < 0;

	if (last != other_last)
		return last - other_last;
	if (a->group != b->group)
		return a->group - b->group;
	if (is_heading(a->option) || is_heading(b->option))
		return is_heading(b->option) - is_heading(a->option);
	return g_strcmp0(a->option->name, b->option->name);
}

static void collect(GArray *entries, const struct argp *argp)
{
	const struct argp_option *option;
	const struct argp_child *child;
	int group = 0;

	for (option = argp->options; option && (option->name || option->key || option->doc);
	     option++) {
		struct entry entry = { .option = option };

		if (option->group)
			group = option->group;
		entry.group = group;
		if (!(option->flags & OPTION_HIDDEN))
			g_array_append_val(entries, entry);
	}
	for (child = argp->children; child && child->argp; child++)
		collect(entries, child->argp);
}

static void print_option(const struct argp_option *option)
{
	bool optional = option->flags & OPTION_ARG_OPTIONAL;

	printf("option\t");
	if (isprint(option->key))
		putchar(option->key);
	printf("\t%s\t%s%s%s\t%s\n", option->name ?: "", option->arg && optional ? "[" : "",
	       option->arg ?: "", option->arg && optional ? "]" : "", option->doc ?: "");
}

void print_option_list(const struct argp *argp)
{
	g_autoptr(GArray) entries = g_array_new(FALSE, FALSE, sizeof(struct entry));
	guint i;

	collect(entries, argp);
	g_array_sort(entries, compare);
	printf("argument\t%s\n", argp->args_doc ?: "");
	for (i = 0; i < entries->len; i++) {
		const struct argp_option *option = g_array_index(entries, struct entry, i).option;

		if (is_heading(option))
			printf("group\t%s\n", option->doc);
		else
			print_option(option);
	}
}
