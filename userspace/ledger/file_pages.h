/* SPDX-License-Identifier: GPL-2.0 */
/*
 * file_pages.h: pages of files that come into the page cache: for the first time, again after they
 * were used, or again before that; in a sweep or in no order.
 *
 * Pure: records in, sums out. A page is counted by where it is in its file, whoever brings it in.
 */
#ifndef MEMTOLL_FILE_PAGES_H
#define MEMTOLL_FILE_PAGES_H

#include <linux/types.h>
#include <stdint.h>

#include "bpf/wire/records.h"

/* Pages are followed in tables of 2 MiB of a file, 1 KiB each: 128 GiB in 64 MiB. */
#define FILE_TABLES_MAX 65536

/* Of one file, and what brought the pages in. Cumulative since the start. */
struct file_site {
	uint64_t inode;
	uint32_t dev;
	uint32_t cause;	 /* FILL_* */
	uint32_t number; /* of the file, from 1 on */
	uint64_t bytes;	 /* its size */
	uint64_t requests;
	uint64_t first_pages;
	uint64_t first_sequential_pages; /* of them, in a sweep */
	uint64_t again_pages;		 /* used since they came in last */
	uint64_t again_sequential_pages;
	uint64_t distinct_pages; /* different pages that came again so */
	uint64_t max_returns;	 /* of one page; ends at 32,766 */
	uint64_t vain_pages;	 /* again, not used since they came in last */
	uint64_t used_pages;	 /* times that a page was used after it had come in */
	uint64_t untracked_pages;
};

typedef void file_site_fn(void *context, const struct file_site *site);

struct file_pages;

struct file_pages *file_pages_new(void);
void file_pages_free(struct file_pages *pages);

/* Pages come in. The file's number. */
uint32_t file_pages_fill(struct file_pages *pages, const struct memtoll_fill *fill);

/* Pages of a file are used, by a fault or a read (cause), which those that came in before matter to. */
void file_pages_use(struct file_pages *pages, uint32_t dev, uint64_t inode, uint32_t cause,
		    uint64_t page, uint64_t count);

/* Every site whose figures have changed since the last call. */
void file_pages_each(struct file_pages *pages, file_site_fn *on_site, void *context);

#endif /* MEMTOLL_FILE_PAGES_H */
