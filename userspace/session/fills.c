// SPDX-License-Identifier: GPL-2.0
#include "session/fills.h"

#include <glib.h>

#include "bpf/wire/faults.h"
#include "bpf/wire/pages.h"
#include "ledger/file_pages.h"
#include "ledger/reuse_distance.h"
#include "session/reuse_writer.h"

/* Different pages followed: exact up to 1 GiB of all files. */
#define PAGES_FOLLOWED (1U << 18)

struct fills {
	struct file_pages *pages;
	struct reuse *reuse; /* of all files */
	bool used;	     /* since it was written */
};

struct fills *fills_new(void)
{
	struct fills *fills = g_new0(struct fills, 1);

	fills->pages = file_pages_new();
	fills->reuse = reuse_new(PAGES_FOLLOWED);
	return fills;
}

void fills_free(struct fills *fills)
{
	if (!fills)
		return;
	file_pages_free(fills->pages);
	reuse_free(fills->reuse);
	g_free(fills);
}

void fills_add(struct fills *fills, const struct memtoll_fill *fill)
{
	uint64_t number = file_pages_fill(fills->pages, fill), page;

	/* A number of 24 bits and a page of 40: no file has so many. */
	for (page = fill->start; page < fill->start + fill->pages; page++)
		reuse_use(fills->reuse, number << 40 ^ page, true);
	fills->used = true;
}

void fills_fault(struct fills *fills, const struct memtoll_run *run)
{
	if (run->fault_class == FAULT_FILE || run->fault_class == FAULT_FILE_AGAIN ||
	    run->fault_class == FAULT_FILE_POPULATED ||
	    ((run->fault_class == FAULT_COW || run->fault_class == FAULT_COW_POPULATED) &&
	     run->inode))
		file_pages_use(fills->pages, run->dev, run->inode, FILL_FAULT, run->file_page,
			       run->pages);
}

void fills_read(struct fills *fills, const struct memtoll_read *run)
{
	uint64_t page = run->start / MEMTOLL_PAGE_SIZE;
	uint64_t end = (run->end + MEMTOLL_PAGE_SIZE - 1) / MEMTOLL_PAGE_SIZE;

	if (!(run->flags & READ_DIRECT))
		file_pages_use(fills->pages, run->dev, run->inode, FILL_READ, page, end - page);
}

struct fills_writer {
	struct recording *recording;
	const struct mapped_files *paths;
	int err;
};

static void write_site(void *context, const struct file_site *site)
{
	struct fills_writer *writer = context;

	if (writer->err)
		return;
	writer->err = recording_fill(
		writer->recording,
		&(struct fill_fact){
			.site = site,
			.cause = site->cause == FILL_READ ? "read" :
				 site->cause == FILL_MAP  ? "map" :
							    "fault",
			.area_name = mapped_files_path(writer->paths, site->dev, site->inode),
			.library = mapped_files_is_library(writer->paths, site->dev, site->inode),
		});
}

int fills_commit(struct fills *fills, struct recording *recording, const struct mapped_files *paths)
{
	struct fills_writer writer = { recording, paths, 0 };

	file_pages_each(fills->pages, write_site, &writer);
	if (fills->used && !writer.err)
		writer.err = reuse_write(recording, "cache", 0, fills->reuse);
	fills->used = false;
	return writer.err;
}
