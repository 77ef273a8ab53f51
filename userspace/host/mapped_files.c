// SPDX-License-Identifier: GPL-2.0
#include "host/mapped_files.h"

#include <glib.h>
#include <string.h>

#include "base/clock.h"
#include "base/keyed_hash.h"
#include "host/maps.h"

/* Device numbers in the kernel's own format (include/linux/kdev_t.h). */
#define DEV(major, minor) ((uint32_t)(major) << 20 | (minor))

struct file {
	uint64_t inode;
	uint32_t dev;
	bool library;
	char *path;
};

/*
 * A map that takes longer to read is read for all its files at once, and then not for so many times
 * as long: files first seen meanwhile have only the last part of their path. Only large maps and
 * those that cannot be read: a small one may be slow because the CPU was busy.
 */
#define SLOW_NS 10000000ULL
#define LARGE_MAPPINGS 1024U
#define REST_TIMES 20
/*
 * All maps together: one part of the time in so many is spent on reading them, but for so much at
 * once, as where a program begins. Of files first seen beyond that only the last part of the path is
 * known as well.
 */
#define READING_PART 20
#define READING_BURST_NS 50000000ULL
/* Bytes of all paths together; beyond it only the last parts are kept. */
#define PATHS_MAX (16U << 20)
#define RESTING_MAX 1024U

struct mapped_files {
	GHashTable *files;   /* struct file -> itself */
	GHashTable *resting; /* pid -> until when, CLOCK_MONOTONIC ns */
	size_t path_bytes;
	uint64_t reading_ns; /* that maps took to be read, less the part of the time since */
	uint64_t reading_seen_ns;
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

struct mapped_files *mapped_files_new(void)
{
	struct mapped_files *mapped = g_new0(struct mapped_files, 1);

	mapped->files = g_hash_table_new_full(file_hash, file_equal, NULL, file_free);
	mapped->resting = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	return mapped;
}

void mapped_files_free(struct mapped_files *mapped)
{
	if (!mapped)
		return;
	g_hash_table_destroy(mapped->files);
	g_hash_table_destroy(mapped->resting);
	g_free(mapped);
}

static const struct file *find(const struct mapped_files *mapped, uint32_t dev, uint64_t inode)
{
	struct file key = { .inode = inode, .dev = dev };

	return g_hash_table_lookup(mapped->files, &key);
}

static struct file *add_file(struct mapped_files *mapped, uint32_t dev, uint64_t inode)
{
	struct file *file = g_new0(struct file, 1);

	file->inode = inode;
	file->dev = dev;
	g_hash_table_add(mapped->files, file);
	return file;
}

static void name_file(struct mapped_files *mapped, struct file *file, const char *path)
{
	size_t bytes = strlen(path);

	if (mapped->path_bytes + bytes <= PATHS_MAX) {
		mapped->path_bytes += bytes;
		file->path = g_strdup(path);
	} else {
		file->path = g_path_get_basename(path);
	}
}

/* Take the path of the file that was asked for, or of all files not known yet. */
static void take_files(struct mapped_files *mapped, const struct maps *maps, struct file *asked,
		       bool all)
{
	g_autoptr(GHashTable) fresh = g_hash_table_new(file_hash, file_equal);
	size_t i;

	g_hash_table_add(fresh, asked);
	for (i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->entries[i];
		uint32_t dev = DEV(mapping->dev_major, mapping->dev_minor);
		struct file key = { .inode = mapping->inode, .dev = dev };
		struct file *file = g_hash_table_lookup(fresh, &key);

		if (!file && all && mapping->inode && !find(mapped, dev, mapping->inode)) {
			file = add_file(mapped, dev, mapping->inode);
			g_hash_table_add(fresh, file);
		}
		if (!file)
			continue;
		file->library |= mapping->exec;
		if (!file->path)
			name_file(mapped, file, mapping->path);
	}
}

static bool is_resting(struct mapped_files *mapped, pid_t pid, uint64_t now)
{
	const uint64_t *until = g_hash_table_lookup(mapped->resting, GINT_TO_POINTER(pid));

	if (until && now >= *until)
		g_hash_table_remove(mapped->resting, GINT_TO_POINTER(pid));
	return until && now < *until;
}

static void rest(struct mapped_files *mapped, pid_t pid, uint64_t until)
{
	if (g_hash_table_size(mapped->resting) >= RESTING_MAX)
		g_hash_table_remove_all(mapped->resting);
	g_hash_table_insert(mapped->resting, GINT_TO_POINTER(pid),
			    g_memdup2(&until, sizeof(until)));
}

static bool may_read(struct mapped_files *mapped, uint64_t now)
{
	uint64_t part = (now - mapped->reading_seen_ns) / READING_PART;

	mapped->reading_ns -= MIN(mapped->reading_ns, part);
	mapped->reading_seen_ns = now;
	return mapped->reading_ns <= READING_BURST_NS;
}

static void read_files(struct mapped_files *mapped, pid_t pid, struct file *asked)
{
	uint64_t begin = now_ns(), took;
	struct maps maps = {};
	bool slow;
	int err;

	if (is_resting(mapped, pid, begin) || !may_read(mapped, begin))
		return;
	err = maps_read(pid, &maps);
	took = now_ns() - begin;
	mapped->reading_ns += took;
	slow = took > SLOW_NS && (err || maps.count > LARGE_MAPPINGS);
	take_files(mapped, &maps, asked, slow);
	maps_free(&maps);
	if (slow)
		rest(mapped, pid, begin + REST_TIMES * took);
}

/*
 * What has no name in any file system lies below the root of its own: /proc/PID/maps shows it so
 * (mm/memfd.c, newseg() in ipc/shm.c), and one that is mapped again and again has one name.
 */
static bool is_of_kernels_own(const char *name)
{
	return g_str_has_prefix(name, "memfd:") ||
	       (g_str_has_prefix(name, "SYSV") && strlen(name) == strlen("SYSV") + 8);
}

void mapped_files_learn(struct mapped_files *mapped, const struct memtoll_file *seen)
{
	struct file *file;

	if (find(mapped, seen->dev, seen->inode))
		return;
	file = add_file(mapped, seen->dev, seen->inode);
	read_files(mapped, (pid_t)seen->tgid, file);
	if (!file->path) {
		g_autofree char *name = g_strndup(seen->name, sizeof(seen->name));

		file->path = g_strconcat(is_of_kernels_own(name) ? "/" : "", name, NULL);
		file->library = strstr(file->path, ".so") != NULL;
	}
}

void mapped_files_learn_code(struct mapped_files *mapped, const struct maps *maps)
{
	size_t i;

	for (i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->entries[i];
		uint32_t dev = DEV(mapping->dev_major, mapping->dev_minor);
		struct file *file;

		if (!mapping->exec || !mapping->inode || find(mapped, dev, mapping->inode))
			continue;
		file = add_file(mapped, dev, mapping->inode);
		file->library = true;
		name_file(mapped, file, mapping->path);
	}
}

const char *mapped_files_path(const struct mapped_files *mapped, uint32_t dev, uint64_t inode)
{
	const struct file *file;

	if (inode == ZERO_FILE_INODE)
		return "/dev/zero";
	file = find(mapped, dev, inode);
	return file ? file->path : "";
}

bool mapped_files_is_library(const struct mapped_files *mapped, uint32_t dev, uint64_t inode)
{
	const struct file *file = find(mapped, dev, inode);

	return file && file->library;
}
