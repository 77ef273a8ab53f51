// SPDX-License-Identifier: GPL-2.0
#include "host/container_find.h"

#include <dirent.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "host/container.h"

#define DEEPEST 16
#define DIRECTORIES_MAX 50000 /* as many as a large machine has; more are not looked at */
#define LISTED_MAX 8
#define ID_SHORTEST 4

enum match { MATCH_ID, MATCH_POD, MATCH_NAME, MATCHES };

struct search {
	const char *root;
	const char *name;
	GPtrArray *found[MATCHES]; /* struct container_found */
	unsigned int looked_at;
};

void container_found_clear(struct container_found *found)
{
	g_free(found->directory);
	g_free(found->title);
	*found = (struct container_found){ 0 };
}

static void found_free(gpointer found)
{
	container_found_clear(found);
	g_free(found);
}

/* A pod is found by each of its containers. */
static void add(GPtrArray *found, char *directory, char *title)
{
	struct container_found *one;
	guint i;

	for (i = 0; i < found->len; i++) {
		one = g_ptr_array_index(found, i);
		if (!strcmp(one->directory, directory)) {
			g_free(directory);
			g_free(title);
			return;
		}
	}
	one = g_new0(struct container_found, 1);
	one->directory = directory;
	one->title = title;
	g_ptr_array_add(found, one);
}

/* "web-1/app" is the end of "shop/web-1/app". */
static bool is_end_of(const char *title, const char *name)
{
	size_t length = strlen(title), end = strlen(name);

	return length >= end && !strcmp(title + length - end, name) &&
	       (length == end || title[length - end - 1] == '/');
}

static void judge(struct search *search, const char *directory, struct container *container)
{
	g_autofree char *title = container_title(container), *pod = NULL;
	const char *name = search->name;

	if (container->name && is_end_of(title, name))
		add(search->found[MATCH_NAME], g_strdup(directory), g_strdup(title));
	else if (strlen(name) >= ID_SHORTEST && g_str_has_prefix(container->id, name))
		add(search->found[MATCH_ID], g_strdup(directory), g_strdup(title));
	if (!container->pod)
		return;
	pod = g_path_get_dirname(title);
	if (is_end_of(pod, name))
		add(search->found[MATCH_POD], g_path_get_dirname(directory), g_strdup(pod));
}

static void look_in(struct search *search, const char *directory, int depth)
{
	DIR *entries = opendir(directory);
	const struct dirent *entry;

	while (entries && (entry = readdir(entries)) && search->looked_at < DIRECTORIES_MAX) {
		g_autofree char *below = NULL;
		struct container container;

		/* Of each directory there are dozens of files. */
		if (entry->d_type != DT_DIR || !strcmp(entry->d_name, ".") ||
		    !strcmp(entry->d_name, ".."))
			continue;
		below = g_build_filename(directory, entry->d_name, NULL);
		search->looked_at++;
		/* Its own cgroup, and not one that it has made below. */
		if (container_of_path(below, &container) &&
		    container.path_length == strlen(below)) {
			container_read_names(search->root, &container);
			judge(search, below, &container);
		}
		container_clear(&container);
		if (depth < DEEPEST)
			look_in(search, below, depth + 1);
	}
	if (entries)
		closedir(entries);
}

static char *list(const GPtrArray *found)
{
	GString *text = g_string_new("");
	guint i;

	for (i = 0; i < found->len && i < LISTED_MAX; i++) {
		const struct container_found *one = g_ptr_array_index(found, i);
		struct container container;

		g_string_append_printf(text, "%s%s", i ? ", " : "", one->title);
		/* Of the same name on one machine: a rootless user's, or one of another runtime. */
		if (container_of_path(one->directory, &container) &&
		    !g_str_has_prefix(container.id, one->title))
			g_string_append_printf(text, " (%.*s)", CONTAINER_ID_SHOWN, container.id);
		container_clear(&container);
	}
	if (found->len > LISTED_MAX)
		g_string_append_printf(text, " and %u more", found->len - LISTED_MAX);
	return g_string_free(text, FALSE);
}

unsigned int container_find(const char *hierarchy, const char *root, const char *name,
			    struct container_found *found, char **ambiguous)
{
	struct search search = { .root = root, .name = name };
	unsigned int count = 0;
	int kind;

	*found = (struct container_found){ 0 };
	*ambiguous = NULL;
	for (kind = 0; kind < MATCHES; kind++)
		search.found[kind] = g_ptr_array_new_with_free_func(found_free);
	look_in(&search, hierarchy, 0);
	for (kind = MATCH_NAME; kind >= 0 && !count; kind--) {
		const GPtrArray *all = search.found[kind];

		count = all->len;
		if (count == 1) {
			*found = *(struct container_found *)g_ptr_array_index(all, 0);
			memset(g_ptr_array_index(all, 0), 0, sizeof(*found));
		} else if (count) {
			*ambiguous = list(all);
		}
	}
	for (kind = 0; kind < MATCHES; kind++)
		g_ptr_array_free(search.found[kind], TRUE);
	return count;
}
