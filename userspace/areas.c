// SPDX-License-Identifier: GPL-2.0
#include "areas.h"

#include <glib.h>
#include <string.h>

#include "proc.h"

/* Device numbers as the kernel keeps them (include/linux/kdev_t.h). */
#define DEV(major, minor) ((uint32_t)(major) << 20 | (minor))

struct file {
	uint64_t inode;
	uint32_t dev;
	bool library;
	char *path;
};

struct areas {
	GHashTable *files;	/* struct file -> itself */
};

static guint file_hash(gconstpointer key)
{
	const struct file *file = key;

	return g_int64_hash(&file->inode) ^ file->dev;
}

static gboolean file_equal(gconstpointer a, gconstpointer b)
{
	const struct file *x = a, *y = b;

	return x->inode == y->inode && x->dev == y->dev;
}

static void file_free(gpointer data)
{
	struct file *file = data;

	g_free(file->path);
	g_free(file);
}

struct areas *areas_new(void)
{
	struct areas *areas = g_new0(struct areas, 1);

	areas->files = g_hash_table_new_full(file_hash, file_equal, NULL, file_free);
	return areas;
}

void areas_free(struct areas *areas)
{
	if (!areas)
		return;
	g_hash_table_destroy(areas->files);
	g_free(areas);
}

static const struct file *find(const struct areas *areas, uint32_t dev, uint64_t inode)
{
	struct file key = { .inode = inode, .dev = dev };

	return g_hash_table_lookup(areas->files, &key);
}

void areas_learn(struct areas *areas, const struct memtoll_file *told)
{
	struct maps maps = {};
	struct file *file;
	size_t i;

	if (find(areas, told->dev, told->inode))
		return;
	file = g_new0(struct file, 1);
	file->inode = told->inode;
	file->dev = told->dev;
	maps_read(told->tgid, &maps);
	for (i = 0; i < maps.count; i++) {
		const struct mapping *mapping = &maps.entries[i];

		if (mapping->inode != told->inode ||
		    DEV(mapping->dev_major, mapping->dev_minor) != told->dev)
			continue;
		file->library |= mapping->exec;
		if (!file->path)
			file->path = g_strdup(mapping->path);
	}
	maps_free(&maps);
	if (!file->path) {
		file->path = g_strndup(told->name, sizeof(told->name));
		file->library = strstr(file->path, ".so") != NULL;
	}
	g_hash_table_add(areas->files, file);
}

const char *areas_path(const struct areas *areas, uint32_t dev, uint64_t inode)
{
	const struct file *file = find(areas, dev, inode);

	return file ? file->path : "";
}

bool areas_is_library(const struct areas *areas, uint32_t dev, uint64_t inode)
{
	const struct file *file = find(areas, dev, inode);

	return file && file->library;
}
