// SPDX-License-Identifier: GPL-2.0
#include "reads.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <glib.h>
#include <string.h>

#include "names.h"

struct file {
	uint64_t inode;
	uint32_t dev;
	uint32_t flags;		/* READ_BLOCK_DEVICE */
	int64_t number;
	uint64_t bytes;
	char *path;
	bool written;
};

/* What the kernel's sum of a key was, and whether it has changed in the last slice. */
struct last_sum {
	struct memtoll_read_key key;
	struct memtoll_read_sum sum;
};

struct reads {
	struct recording *recording;
	GHashTable *files;	/* struct file -> itself; by inode and dev */
	int64_t file_count;
	GHashTable *sums;	/* struct last_sum -> itself; by key */
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

static guint sum_hash(gconstpointer data)
{
	const struct memtoll_read_key *key = data;
	uint64_t hash = (key->inode ^ key->stack_id) * 0x9e3779b97f4a7c15ULL;

	hash = (hash ^ hash >> 29 ^ key->tgid ^ (uint64_t)key->dev << 20 ^ key->read_fn ^
		key->flags << 4) * 0xff51afd7ed558ccdULL;
	return hash >> 32;
}

static gboolean sum_equal(gconstpointer a, gconstpointer b)
{
	return !memcmp(a, b, sizeof(struct memtoll_read_key));
}

struct reads *reads_new(struct recording *recording)
{
	struct reads *reads = g_new0(struct reads, 1);

	reads->recording = recording;
	reads->files = g_hash_table_new_full(file_hash, file_equal, NULL, file_free);
	reads->sums = g_hash_table_new_full(sum_hash, sum_equal, NULL, g_free);
	return reads;
}

void reads_free(struct reads *reads)
{
	if (!reads)
		return;
	g_hash_table_destroy(reads->files);
	g_hash_table_destroy(reads->sums);
	g_free(reads);
}

/* The file of an inode; one whose path was not told (lost) has none. */
static struct file *file_get(struct reads *reads, uint32_t dev, uint64_t inode, uint32_t flags)
{
	struct file key = { .inode = inode, .dev = dev };
	struct file *file = g_hash_table_lookup(reads->files, &key);

	if (file)
		return file;
	file = g_new0(struct file, 1);
	file->inode = inode;
	file->dev = dev;
	file->flags = flags & READ_BLOCK_DEVICE;
	file->number = ++reads->file_count;
	file->path = g_strdup("");
	g_hash_table_add(reads->files, file);
	return file;
}

static char *join_path(const struct memtoll_path *told)
{
	GString *path = g_string_new(told->flags & PATH_CUT ? "..." : "");
	int i, count = 0;

	while (count < MEMTOLL_PATH_PARTS && told->parts[count][0])
		count++;
	for (i = count - 1; i >= 0; i--) {
		g_string_append_c(path, '/');
		g_string_append_len(path, told->parts[i],
				    strnlen(told->parts[i], MEMTOLL_PATH_PART));
	}
	return g_string_free(path, FALSE);
}

void reads_path(struct reads *reads, const struct memtoll_path *told)
{
	struct file *file = file_get(reads, told->dev, told->inode, told->flags);

	/* Told again: the kernel had forgotten, or another file has got the number of this one. */
	if (*file->path) {
		g_autofree char *path = join_path(told);

		if (!strcmp(path, file->path))
			return;
		g_hash_table_remove(reads->files, file);
		file = file_get(reads, told->dev, told->inode, told->flags);
	}
	g_free(file->path);
	file->path = join_path(told);
	file->bytes = told->bytes;
	file->written = false;
}

void reads_run(struct reads *reads, const struct memtoll_read *run)
{
	file_get(reads, run->dev, run->inode, run->flags);
}

static int write_file(struct reads *reads, struct file *file)
{
	if (file->written)
		return 0;
	file->written = true;
	return recording_file(reads->recording, &(struct file_fact){
		.file = file->number,
		.dev = file->dev,
		.inode = file->inode,
		.path = file->path,
		.kind = file->flags & READ_BLOCK_DEVICE ? "block device" : "file",
		.bytes = file->bytes,
	});
}

#define SUM_WORDS (sizeof(struct memtoll_read_sum) / sizeof(uint64_t))

/* Sum over the CPUs; into delta the difference to the last call. false: nothing has changed. */
static bool take_delta(struct last_sum *last, const uint64_t *values, int cpus,
		       struct memtoll_read_sum *delta)
{
	uint64_t *before = (uint64_t *)&last->sum, *difference = (uint64_t *)delta, total;
	bool changed = false;
	size_t i;
	int cpu;

	for (i = 0; i < SUM_WORDS; i++) {
		for (total = 0, cpu = 0; cpu < cpus; cpu++)
			total += values[cpu * SUM_WORDS + i];
		difference[i] = total - before[i];
		before[i] = total;
		changed |= difference[i] != 0;
	}
	return changed;
}

static int give_out(struct reads *reads, const struct last_sum *last,
		    const struct memtoll_read_sum *delta, read_fn *on_read, void *context)
{
	const struct memtoll_read_key *key = &last->key;
	struct file *file = file_get(reads, key->dev, key->inode, key->flags);

	on_read(context, &(struct file_read_fact){
		.pid = key->tgid,
		.file = file->number,
		.call = read_fn_name(key->read_fn),
		.stack_id = key->stack_id,
		.direct = key->flags & READ_DIRECT,
		.sum = *delta,
	});
	return write_file(reads, file);
}

/*
 * A program may read more files than the map can hold. What did not change for a whole slice is
 * taken out of it, with what it has then.
 */
int reads_commit(struct reads *reads, int map_fd, read_fn *on_read, void *context)
{
	int cpus = libbpf_num_possible_cpus(), err = 0;
	g_autofree uint64_t *values = g_new0(uint64_t, SUM_WORDS * cpus);
	struct memtoll_read_key key, next;
	struct memtoll_read_sum delta;
	struct last_sum *last;
	bool more, changed;

	for (more = !bpf_map_get_next_key(map_fd, NULL, &key); more && !err; key = next) {
		more = !bpf_map_get_next_key(map_fd, &key, &next);
		if (bpf_map_lookup_elem(map_fd, &key, values))
			continue;
		last = g_hash_table_lookup(reads->sums, &key);
		if (!last) {
			last = g_new0(struct last_sum, 1);
			last->key = key;
			g_hash_table_add(reads->sums, last);
		}
		changed = take_delta(last, values, cpus, &delta);
		if (changed)
			err = give_out(reads, last, &delta, on_read, context);
		if (changed || bpf_map_lookup_and_delete_elem(map_fd, &key, values))
			continue;
		if (take_delta(last, values, cpus, &delta))
			err = give_out(reads, last, &delta, on_read, context);
		g_hash_table_remove(reads->sums, &key);
	}
	return err;
}
