// SPDX-License-Identifier: GPL-2.0
#include "host/mapped_files.h"

#include <glib.h>
#include <string.h>

#include "base/clock.h"
#include "base/keyed_hash.h"
#include "host/maps.h"

/* Device numbers as the kernel keeps them (include/linux/kdev_t.h). */
#define DEV(major, minor) ((uint32_t)(major) << 20 | (minor))

struct file {
	uint64_t inode;
	uint32_t dev;
	bool library;
	char *path;
};

/*
 * A map that is large, or cannot be read, and takes longer than this, is read for all its files at
 * once, and not again for so many times as long: files that are met meanwhile are called by the last
 * part of their path. By the time alone a small one would rest where others had the processor.
 */
#define SLOW_NS 10000000ULL
#define LARGE_MAPPINGS 1024U
#define REST_TIMES 20
/* Paths of all files together; those beyond are their last part, too. */
#define PATHS_MAX (16U << 20)
#define RESTING_MAX 1024U

struct areas {
	GHashTable *files;	/* struct file -> itself */
	GHashTable *resting;	/* pid -> until when, CLOCK_MONOTONIC ns */
	size_t path_bytes;
};

static guint file_hash(gconstpointer key)
{
	const struct file *file = key;

	return keyed_hash_file(file->inode, file->dev);
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
	areas->resting = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	return areas;
}

void areas_free(struct areas *areas)
{
	if (!areas)
		return;
	g_hash_table_destroy(areas->files);
	g_hash_table_destroy(areas->resting);
	g_free(areas);
}

static const struct file *find(const struct areas *areas, uint32_t dev, uint64_t inode)
{
	struct file key = { .inode = inode, .dev = dev };

	return g_hash_table_lookup(areas->files, &key);
}

static struct file *add_file(struct areas *areas, uint32_t dev, uint64_t inode)
{
	struct file *file = g_new0(struct file, 1);

	file->inode = inode;
	file->dev = dev;
	g_hash_table_add(areas->files, file);
	return file;
}

static void name_file(struct areas *areas, struct file *file, const char *path)
{
	size_t bytes = strlen(path);

	if (areas->path_bytes + bytes <= PATHS_MAX) {
		areas->path_bytes += bytes;
		file->path = g_strdup(path);
	} else {
		file->path = g_path_get_basename(path);
	}
}

/* The files of a map: the one that is asked for, or all that are not known yet. */
static void take_files(struct areas *areas, const struct maps *maps, struct file *asked, bool all)
{
	g_autoptr(GHashTable) fresh = g_hash_table_new(file_hash, file_equal);
	size_t i;

	g_hash_table_add(fresh, asked);
	for (i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->entries[i];
		uint32_t dev = DEV(mapping->dev_major, mapping->dev_minor);
		struct file key = { .inode = mapping->inode, .dev = dev };
		struct file *file = g_hash_table_lookup(fresh, &key);

		if (!file && all && mapping->inode && !find(areas, dev, mapping->inode)) {
			file = add_file(areas, dev, mapping->inode);
			g_hash_table_add(fresh, file);
		}
		if (!file)
			continue;
		file->library |= mapping->exec;
		if (!file->path)
			name_file(areas, file, mapping->path);
	}
}

static bool is_resting(struct areas *areas, pid_t pid, uint64_t now)
{
	const uint64_t *until = g_hash_table_lookup(areas->resting, GINT_TO_POINTER(pid));

	if (until && now >= *until)
		g_hash_table_remove(areas->resting, GINT_TO_POINTER(pid));
	return until && now < *until;
}

static void rest(struct areas *areas, pid_t pid, uint64_t until)
{
	if (g_hash_table_size(areas->resting) >= RESTING_MAX)
		g_hash_table_remove_all(areas->resting);
	g_hash_table_insert(areas->resting, GINT_TO_POINTER(pid),
			    g_memdup2(&until, sizeof(until)));
}

static void read_files(struct areas *areas, pid_t pid, struct file *asked)
{
	uint64_t begin = now_ns(), took;
	struct maps maps = {};
	bool slow;
	int err;

	if (is_resting(areas, pid, begin))
		return;
	err = maps_read(pid, &maps);
	took = now_ns() - begin;
	slow = took > SLOW_NS && (err || maps.count > LARGE_MAPPINGS);
	take_files(areas, &maps, asked, slow);
	maps_free(&maps);
	if (slow)
		rest(areas, pid, begin + REST_TIMES * took);
}

void areas_learn(struct areas *areas, const struct memtoll_file *told)
{
	struct file *file;

	if (find(areas, told->dev, told->inode))
		return;
	file = add_file(areas, told->dev, told->inode);
	read_files(areas, (pid_t)told->tgid, file);
	if (!file->path) {
		file->path = g_strndup(told->name, sizeof(told->name));
		file->library = strstr(file->path, ".so") != NULL;
	}
}

void areas_learn_code(struct areas *areas, const struct maps *maps)
{
	size_t i;

	for (i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->entries[i];
		uint32_t dev = DEV(mapping->dev_major, mapping->dev_minor);
		struct file *file;

		if (!mapping->exec || !mapping->inode || find(areas, dev, mapping->inode))
			continue;
		file = add_file(areas, dev, mapping->inode);
		file->library = true;
		name_file(areas, file, mapping->path);
	}
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
