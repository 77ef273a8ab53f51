// SPDX-License-Identifier: GPL-2.0
#include "session/reads.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <glib.h>
#include <string.h>

#include "base/hash.h"
#include "bpf/wire/pages.h"
#include "events/names.h"
#include "ledger/reuse_distance.h"
#include "session/reuse_writer.h"

/* Different blocks followed: exact up to 512 MiB of all files, and 128 MiB of each. */
#define BLOCKS_OF_ALL (1U << 17)
#define BLOCKS_OF_FILE (1U << 15)
/* Of all files together, 64 MiB; beyond, the file with most of them drops half. */
#define BLOCKS_TOTAL (1U << 20)
/* Anonymous pages, when there is swap: exact up to 1 GiB. */
#define PAGES_FOLLOWED (1U << 18)

struct file {
	uint64_t inode;
	uint32_t dev;
	uint32_t flags; /* READ_BLOCK_DEVICE */
	int64_t number;
	uint64_t bytes;
	char *path;
	bool wanted;	     /* rows refer to it */
	bool written;	     /* as it is known */
	struct reuse *reuse; /* of its blocks of MEMTOLL_PAGE_SIZE; NULL: none read yet */
	uint64_t last_end;   /* of its last run */
	bool used;	     /* since its reuse was written */
};

/* What the kernel's sum of a key was, and whether it has changed in the last slice. */
struct last_sum {
	struct memtoll_read_key key;
	struct memtoll_read_sum sum;
};

/* One of the kernel's maps. */
struct kernel_sums {
	int fd;
	int cpus;	  /* values of a row */
	GHashTable *last; /* struct last_sum -> itself; by key */
};

struct reads {
	struct recording *recording;
	struct kernel_sums sums[2];
	GHashTable *files; /* struct file -> itself; by inode and dev */
	int64_t file_count;
	struct reuse *all;   /* blocks of all files */
	uint64_t followed;   /* blocks of the single files */
	struct reuse *pages; /* anonymous ones; NULL: no swap so far */
	bool used;	     /* since it was written */
	bool pages_used;
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

	reuse_free(file->reuse);
	g_free(file->path);
	g_free(file);
}

static guint sum_hash(gconstpointer data)
{
	const struct memtoll_read_key *key = data;
	uint64_t hash = (key->inode ^ key->stack_id) * HASH_GOLDEN;

	hash = (hash ^ hash >> 29 ^ key->tgid ^ (uint64_t)key->dev << 20 ^ key->read_fn ^
		key->flags << 4) *
	       HASH_FACTOR;
	return hash >> 32;
}

static gboolean sum_equal(gconstpointer a, gconstpointer b)
{
	return !memcmp(a, b, sizeof(struct memtoll_read_key));
}

struct reads *reads_new(struct recording *recording, struct bpf_map *sums, struct bpf_map *shared)
{
	struct reads *reads = g_new0(struct reads, 1);
	struct bpf_map *const maps[] = { sums, shared };
	size_t i;

	reads->recording = recording;
	for (i = 0; i < G_N_ELEMENTS(maps); i++)
		reads->sums[i] = (struct kernel_sums){
			.fd = bpf_map__fd(maps[i]),
			.cpus = bpf_map__type(maps[i]) == BPF_MAP_TYPE_HASH ?
					1 :
					libbpf_num_possible_cpus(),
			.last = g_hash_table_new_full(sum_hash, sum_equal, NULL, g_free),
		};
	reads->all = reuse_new(BLOCKS_OF_ALL);
	reads->files = g_hash_table_new_full(file_hash, file_equal, NULL, file_free);
	return reads;
}

void reads_free(struct reads *reads)
{
	size_t i;

	if (!reads)
		return;
	g_hash_table_destroy(reads->files);
	for (i = 0; i < G_N_ELEMENTS(reads->sums); i++)
		g_hash_table_destroy(reads->sums[i].last);
	reuse_free(reads->all);
	reuse_free(reads->pages);
	g_free(reads);
}

/* The file of an inode; one whose record of its path was lost has none. */
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

static char *join_path(const struct memtoll_path *record)
{
	GString *path = g_string_new(record->flags & PATH_CUT ? "..." : "");
	int i, count = 0;

	while (count < MEMTOLL_PATH_PARTS && record->parts[count][0])
		count++;
	for (i = count - 1; i >= 0; i--) {
		g_string_append_c(path, '/');
		g_string_append_len(path, record->parts[i],
				    strnlen(record->parts[i], MEMTOLL_PATH_PART));
	}
	return g_string_free(path, FALSE);
}

void reads_path(struct reads *reads, const struct memtoll_path *record)
{
	struct file *file = file_get(reads, record->dev, record->inode, record->flags);

	/* Once more: the kernel had forgotten it, or another file has the number of this one. */
	if (*file->path) {
		g_autofree char *path = join_path(record);

		if (!strcmp(path, file->path))
			return;
		reads->followed -= file->reuse ? reuse_followed(file->reuse) : 0;
		g_hash_table_remove(reads->files, file);
		file = file_get(reads, record->dev, record->inode, record->flags);
	}
	g_free(file->path);
	file->path = join_path(record);
	file->bytes = record->bytes;
	file->written = false;
}

/* Memory is bounded: the file with most blocks followed drops half of them. */
static void shrink_largest(struct reads *reads)
{
	struct file *file, *largest = NULL;
	GHashTableIter iter;

	g_hash_table_iter_init(&iter, reads->files);
	while (g_hash_table_iter_next(&iter, (gpointer *)&file, NULL))
		if (file->reuse &&
		    (!largest || reuse_followed(file->reuse) > reuse_followed(largest->reuse)))
			largest = file;
	if (!largest)
		return;
	reads->followed -= reuse_followed(largest->reuse);
	reuse_shrink(largest->reuse);
	reads->followed += reuse_followed(largest->reuse);
	largest->used = true;
}

void reads_run(struct reads *reads, const struct memtoll_read *run)
{
	struct file *file = file_get(reads, run->dev, run->inode, run->flags);
	uint64_t block = run->start / MEMTOLL_PAGE_SIZE;
	uint64_t end = (run->end + MEMTOLL_PAGE_SIZE - 1) / MEMTOLL_PAGE_SIZE;
	uint32_t before;

	/* A sequence that goes on inside a block does not use it again. */
	if (run->start == file->last_end && run->start % MEMTOLL_PAGE_SIZE)
		block++;
	file->last_end = run->end;
	if (!file->reuse)
		file->reuse = reuse_new(BLOCKS_OF_FILE);
	before = reuse_followed(file->reuse);
	for (; block < end; block++) {
		reuse_use(file->reuse, block, true);
		/* A number of 24 bits and a block of 40: no file has so many. */
		reuse_use(reads->all, (uint64_t)file->number << 40 ^ block, true);
	}
	reads->followed += reuse_followed(file->reuse);
	reads->followed -= before;
	file->used = true;
	reads->used = true;
	if (reads->followed > BLOCKS_TOTAL)
		shrink_largest(reads);
}

void reads_fault(struct reads *reads, const struct memtoll_run *run)
{
	bool back = run->fault_class == FAULT_SWAP || run->fault_class == FAULT_SWAP_ZSWAP ||
		    run->fault_class == FAULT_SWAP_ZERO || run->fault_class == FAULT_SWAP_ZRAM;
	bool first = fault_clears(run->fault_class) || run->fault_class == FAULT_COW ||
		     run->fault_class == FAULT_COW_MERGED;
	/* A page of shared memory is the same one in each process that has it at this address. */
	uint64_t owner = run->area == AREA_SHARED && run->inode ? run->inode : run->tgid;
	uint64_t page = run->address / MEMTOLL_PAGE_SIZE, i;

	if (!back && !first)
		return;
	if (!reads->pages)
		reads->pages = reuse_new(PAGES_FOLLOWED);
	/* Addresses have 47 bits, so their pages 35, or 44 with five levels of page tables. */
	for (i = 0; i < run->pages; i++)
		reuse_use(reads->pages, owner << 40 ^ (page + i), back);
	reads->pages_used = true;
}

static int write_reuses(struct reads *reads)
{
	struct file *file;
	GHashTableIter iter;
	int err = 0;

	g_hash_table_iter_init(&iter, reads->files);
	while (!err && g_hash_table_iter_next(&iter, (gpointer *)&file, NULL)) {
		if (!file->used)
			continue;
		file->used = false;
		err = reuse_write(reads->recording, "file", file->number, file->reuse);
	}
	if (!err && reads->used)
		err = reuse_write(reads->recording, "files", 0, reads->all);
	if (!err && reads->pages_used)
		err = reuse_write(reads->recording, "swap", 0, reads->pages);
	reads->used = false;
	reads->pages_used = false;
	return err;
}

static int write_file(struct reads *reads, struct file *file)
{
	if (!file->wanted || file->written)
		return 0;
	file->written = true;
	return recording_file(reads->recording,
			      &(struct file_fact){
				      .file = file->number,
				      .dev = file->dev,
				      .inode = file->inode,
				      .path = file->path,
				      .kind = file->flags & READ_BLOCK_DEVICE ? "block device" :
										"file",
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

static void give_out(struct reads *reads, const struct last_sum *last,
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
	file->wanted = true;
}

/* Also those whose paths have come only after their sums. */
static int write_files(struct reads *reads)
{
	struct file *file;
	GHashTableIter iter;
	int err = 0;

	g_hash_table_iter_init(&iter, reads->files);
	while (!err && g_hash_table_iter_next(&iter, (gpointer *)&file, NULL))
		err = write_file(reads, file);
	return err;
}

/*
 * A program may read more files than the map can hold. What did not change for a whole slice is
 * taken out of it, with what it has then.
 */
static void commit_sums(struct reads *reads, const struct kernel_sums *sums, owner_fn *owner,
			read_fn *on_read, void *context)
{
	g_autofree uint64_t *values = g_new0(uint64_t, SUM_WORDS * sums->cpus);
	struct memtoll_read_key key, next;
	struct memtoll_read_sum delta;
	struct last_sum *last;
	bool more, changed;

	for (more = !bpf_map_get_next_key(sums->fd, NULL, &key); more; key = next) {
		more = !bpf_map_get_next_key(sums->fd, &key, &next);
		if (owner(context, key.tgid) == OWNER_COMING ||
		    bpf_map_lookup_elem(sums->fd, &key, values))
			continue;
		last = g_hash_table_lookup(sums->last, &key);
		if (!last) {
			last = g_new0(struct last_sum, 1);
			last->key = key;
			g_hash_table_add(sums->last, last);
		}
		changed = take_delta(last, values, sums->cpus, &delta);
		if (changed)
			give_out(reads, last, &delta, on_read, context);
		if (changed || bpf_map_lookup_and_delete_elem(sums->fd, &key, values))
			continue;
		if (take_delta(last, values, sums->cpus, &delta))
			give_out(reads, last, &delta, on_read, context);
		g_hash_table_remove(sums->last, &key);
	}
}

int reads_commit(struct reads *reads, owner_fn *owner, read_fn *on_read, void *context)
{
	size_t i;
	int err;

	for (i = 0; i < G_N_ELEMENTS(reads->sums); i++)
		commit_sums(reads, &reads->sums[i], owner, on_read, context);
	err = write_files(reads);
	return err ? err : write_reuses(reads);
}
