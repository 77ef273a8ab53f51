// SPDX-License-Identifier: GPL-2.0
/*
 * fills.c. A file is to page_access.c what a process is to swap: pages are counted by where they
 * are in the file, whoever brought them in.
 */
#include "session/fills.h"

#include <glib.h>
#include <stdbool.h>

#include "bpf/wire/pages.h"
#include "ledger/page_access.h"
#include "ledger/reuse_distance.h"
#include "session/reuse_writer.h"

/* Different pages followed: exact up to 1 GiB of all files. */
#define PAGES_FOLLOWED (1U << 18)

struct file {
	uint64_t inode;
	uint32_t dev;
	pid_t number; /* stands for the file where page_access.c has a process */
	uint64_t bytes;
};

struct fills {
	GHashTable *files;  /* struct file -> itself; by inode and dev */
	GPtrArray *numbers; /* the same by number, less 1 */
	struct accesses *accesses;
	struct reuse *pages; /* of all files */
	bool used;	     /* since it was written */
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

struct fills *fills_new(void)
{
	struct fills *fills = g_new0(struct fills, 1);

	fills->files = g_hash_table_new_full(file_hash, file_equal, NULL, g_free);
	fills->numbers = g_ptr_array_new();
	fills->accesses = accesses_new();
	fills->pages = reuse_new(PAGES_FOLLOWED);
	return fills;
}

void fills_free(struct fills *fills)
{
	if (!fills)
		return;
	g_hash_table_destroy(fills->files);
	g_ptr_array_free(fills->numbers, TRUE);
	accesses_free(fills->accesses);
	reuse_free(fills->pages);
	g_free(fills);
}

static struct file *file_get(struct fills *fills, const struct memtoll_fill *fill)
{
	const struct file key = { .inode = fill->inode, .dev = fill->dev };
	struct file *file = g_hash_table_lookup(fills->files, &key);

	if (!file) {
		file = g_memdup2(&key, sizeof(key));
		g_ptr_array_add(fills->numbers, file);
		file->number = (pid_t)fills->numbers->len;
		g_hash_table_add(fills->files, file);
	}
	file->bytes = fill->bytes;
	return file;
}

void fills_add(struct fills *fills, const struct memtoll_fill *fill)
{
	const struct file *file = file_get(fills, fill);
	uint64_t page;

	accesses_fill(fills->accesses, file->number, fill);
	/* A number of 24 bits and a page of 40: no file has so many. */
	for (page = fill->start; page < fill->start + fill->pages; page++)
		reuse_use(fills->pages, (uint64_t)file->number << 40 ^ page, true);
	fills->used = true;
}

static void use(struct fills *fills, const struct memtoll_fill *site, uint64_t page, uint64_t pages)
{
	const struct file key = { .inode = site->inode, .dev = site->dev };
	const struct file *file = g_hash_table_lookup(fills->files, &key);

	if (file)
		accesses_use(fills->accesses, file->number, site, page, pages);
}

void fills_fault(struct fills *fills, const struct memtoll_run *run)
{
	const struct memtoll_fill site = {
		.flags = FILL_FAULT,
		.inode = run->inode,
		.dev = run->dev,
	};

	if (run->fault_class == FAULT_FILE || run->fault_class == FAULT_FILE_AGAIN ||
	    (run->fault_class == FAULT_COW && run->inode))
		use(fills, &site, run->file_page, run->pages);
}

void fills_read(struct fills *fills, const struct memtoll_read *run)
{
	const struct memtoll_fill site = {
		.flags = FILL_READ,
		.inode = run->inode,
		.dev = run->dev,
	};
	uint64_t page = run->start / MEMTOLL_PAGE_SIZE;
	uint64_t end = (run->end + MEMTOLL_PAGE_SIZE - 1) / MEMTOLL_PAGE_SIZE;

	if (!(run->flags & READ_DIRECT))
		use(fills, &site, page, end - page);
}

struct fills_writer {
	struct fills *fills;
	struct recording *recording;
	const struct mapped_files *paths;
	int err;
};

static void write_site(void *context, const struct access *access)
{
	struct fills_writer *writer = context;
	const struct file *file = g_ptr_array_index(writer->fills->numbers, access->pid - 1);

	if (writer->err)
		return;
	writer->err = recording_fill(
		writer->recording,
		&(struct fill_fact){
			.dev = file->dev,
			.inode = file->inode,
			.cause = access->area == FILL_READ ? "read" :
				 access->area == FILL_MAP  ? "map" :
							     "fault",
			.area_name = mapped_files_path(writer->paths, file->dev, file->inode),
			.library = mapped_files_is_library(writer->paths, file->dev, file->inode),
			.bytes = file->bytes,
			.access = access,
		});
}

int fills_commit(struct fills *fills, struct recording *recording, const struct mapped_files *paths)
{
	struct fills_writer writer = { fills, recording, paths, 0 };

	accesses_each(fills->accesses, write_site, &writer);
	if (fills->used && !writer.err)
		writer.err = reuse_write(recording, "cache", 0, fills->pages);
	fills->used = false;
	return writer.err;
}
