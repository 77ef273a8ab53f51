// SPDX-License-Identifier: GPL-2.0
#include "top/top_groups.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "host/cgroup.h"
#include "host/container.h"
#include "top/top_pseudonyms.h"

#define DEPTH_MOST 16
#define GROUPS_MOST 20000
#define LINKS_OF_LEAF 2 /* its name, and its "." */

struct top_groups {
	char *root;
	struct top_pseudonyms *pseudonyms;
	GHashTable *paths; /* int64_t -> char *: path, or a container's title */
	GHashTable *late;  /* the same, of those that may have come since; looked for again */
	bool read;	   /* since top_groups_refresh() */
};

struct top_groups *top_groups_new(const char *root, struct top_pseudonyms *pseudonyms)
{
	struct top_groups *groups = g_new0(struct top_groups, 1);

	groups->root = root ? g_strdup(root) : cgroup_find("/");
	groups->pseudonyms = pseudonyms;
	groups->paths = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	groups->late = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	return groups;
}

void top_groups_free(struct top_groups *groups)
{
	if (!groups)
		return;
	g_hash_table_destroy(groups->paths);
	g_hash_table_destroy(groups->late);
	g_free(groups->root);
	g_free(groups);
}

void top_groups_refresh(struct top_groups *groups)
{
	groups->read = false;
	g_hash_table_remove_all(groups->late);
	/* Most of so many are gone. */
	if (g_hash_table_size(groups->paths) >= GROUPS_MOST)
		g_hash_table_remove_all(groups->paths);
}

static void add(GHashTable *names, uint64_t number, const char *path)
{
	int64_t *key = g_new(int64_t, 1);

	*key = (int64_t)number;
	g_hash_table_replace(names, key, g_strdup(path));
}

/* A container by what it is called, a group of no container by its path. Freed by the caller. */
static char *call(const char *path)
{
	struct container container;
	char *title = NULL;

	if (!container_of_path(path, &container))
		return g_strdup(*path ? path : "/");
	if (container.path_length == strlen(path)) {
		container_read_names("", &container);
		title = container_title(&container);
	}
	container_clear(&container);
	return title ? title : g_strdup(path);
}

static void read_below(struct top_groups *groups, const char *path, int depth)
{
	g_autofree char *directory = g_strconcat(groups->root, path, NULL);
	g_autofree char *title = NULL;
	g_autoptr(GDir) dir = NULL;
	const char *name;
	g_autofree char *said = NULL;
	struct stat status;

	if (stat(directory, &status) || !S_ISDIR(status.st_mode))
		return;
	title = call(path);
	said = *path ? top_pseudonym(groups->pseudonyms, "group", title) : g_strdup(title);
	add(groups->paths, status.st_ino, said);
	/* Most groups have none below them, and each some forty files. */
	if (status.st_nlink == LINKS_OF_LEAF)
		return;
	dir = depth < DEPTH_MOST ? g_dir_open(directory, 0, NULL) : NULL;
	while (dir && (name = g_dir_read_name(dir)) &&
	       g_hash_table_size(groups->paths) < GROUPS_MOST) {
		g_autofree char *below = NULL;

		/* Controls have a dot; so have few groups, "a.service": a look tells. */
		below = g_strconcat(path, "/", name, NULL);
		read_below(groups, below, depth + 1);
	}
}

const char *top_group(struct top_groups *groups, uint64_t number)
{
	g_autofree char *text = NULL;
	GHashTable *names;
	const char *path;

	if (!number)
		return "(no group)";
	path = g_hash_table_lookup(groups->paths, &number);
	if (path)
		return path;
	names = groups->read ? groups->late : groups->paths;
	if (!groups->read && groups->root)
		read_below(groups, "", 0);
	groups->read = true;
	path = g_hash_table_lookup(names, &number);
	if (path)
		return path;
	text = g_strdup_printf("(group %" G_GUINT64_FORMAT ", gone)", number);
	add(names, number, text);
	return g_hash_table_lookup(names, &number);
}
