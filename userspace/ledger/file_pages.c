// SPDX-License-Identifier: GPL-2.0
/* file_pages.c. Hash tables are GLib's. */
#include "ledger/file_pages.h"

#include <glib.h>
#include <stdbool.h>

#define TABLE_PAGES 512

/* Of a page: used since it came in. What is below counts how often it did so after use, and one. */
#define USED 0x8000

#define CAUSES 3 /* FILL_FAULT, FILL_READ, FILL_MAP */

#define STREAMS 8
#define GAP_PAGES 64	  /* a sweep may leave out this many pages: those that are there */
#define WEIGHT_BELIEVED 4 /* continuations after which a stream is a sweep: chance makes few */

struct table {
	uint16_t pages[TABLE_PAGES];
};

/* Pages that were wanted one after the other. */
struct stream {
	uint64_t wanted;      /* the last one */
	uint64_t end;	      /* of what was brought in for them: read-ahead goes farther */
	uint64_t used;	      /* site->clock when it was last continued */
	uint64_t first_pages; /* waiting until the stream is believed */
	uint64_t again_pages;
	unsigned int weight;
};

struct site {
	struct file_site sums;
	bool changed;
	uint64_t clock;
	struct stream *latest;
	unsigned int stream_count;
	struct stream streams[STREAMS];
};

struct file {
	uint64_t inode;
	uint32_t dev;
	GHashTable *tables; /* page / TABLE_PAGES -> struct table */
	struct site sites[CAUSES];
};

struct file_pages {
	GHashTable *files;  /* struct file -> itself; by inode and dev */
	GPtrArray *changed; /* struct site */
	size_t table_count;
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

	g_hash_table_destroy(file->tables);
	g_free(file);
}

struct file_pages *file_pages_new(void)
{
	struct file_pages *pages = g_new0(struct file_pages, 1);

	pages->files = g_hash_table_new_full(file_hash, file_equal, NULL, file_free);
	pages->changed = g_ptr_array_new();
	return pages;
}

void file_pages_free(struct file_pages *pages)
{
	if (!pages)
		return;
	g_hash_table_destroy(pages->files);
	g_ptr_array_free(pages->changed, TRUE);
	g_free(pages);
}

static struct file *file_find(const struct file_pages *pages, uint32_t dev, uint64_t inode)
{
	const struct file key = { .inode = inode, .dev = dev };

	return g_hash_table_lookup(pages->files, &key);
}

static struct file *file_get(struct file_pages *pages, const struct memtoll_fill *fill)
{
	struct file *file = file_find(pages, fill->dev, fill->inode);
	unsigned int i;

	if (!file) {
		file = g_new0(struct file, 1);
		file->inode = fill->inode;
		file->dev = fill->dev;
		file->tables = g_hash_table_new_full(NULL, NULL, NULL, g_free);
		g_hash_table_add(pages->files, file);
		for (i = 0; i < CAUSES; i++) {
			file->sites[i].sums.inode = fill->inode;
			file->sites[i].sums.dev = fill->dev;
			file->sites[i].sums.cause = 1U << i;
			file->sites[i].sums.number = g_hash_table_size(pages->files);
		}
	}
	for (i = 0; i < CAUSES; i++)
		file->sites[i].sums.bytes = fill->bytes;
	return file;
}

static struct site *site_of(struct file_pages *pages, struct file *file, uint32_t cause)
{
	struct site *site = &file->sites[cause == FILL_FAULT ? 0 : cause == FILL_READ ? 1 : 2];

	if (!site->changed) {
		site->changed = true;
		g_ptr_array_add(pages->changed, site);
	}
	return site;
}

/* ---- pages ---- */

static struct table *table_find(const struct file *file, uint64_t page)
{
	return g_hash_table_lookup(file->tables, GSIZE_TO_POINTER(page / TABLE_PAGES));
}

/* NULL when as many tables are in use as there may be. */
static struct table *table_get(struct file_pages *pages, struct file *file, uint64_t page)
{
	struct table *table = table_find(file, page);

	if (table || pages->table_count >= FILE_TABLES_MAX)
		return table;
	table = g_new0(struct table, 1);
	g_hash_table_insert(file->tables, GSIZE_TO_POINTER(page / TABLE_PAGES), table);
	pages->table_count++;
	return table;
}

static void page_comes(struct file_site *sums, uint16_t *page)
{
	uint16_t times = *page & ~USED;

	if (!times) {
		sums->first_pages++;
		*page = 1;
	} else if (*page & USED) {
		sums->again_pages++;
		sums->distinct_pages += times == 1;
		sums->max_returns = MAX(sums->max_returns, times);
		*page = MIN(times, USED - 2) + 1;
	} else {
		sums->vain_pages++;
	}
}

struct use {
	struct file_site *sums;
	uint64_t first, last;
};

static void use_table(gpointer key, gpointer value, gpointer data)
{
	const struct use *use = data;
	uint64_t start = GPOINTER_TO_SIZE(key) * TABLE_PAGES;
	struct table *table = value;
	uint64_t page = MAX(use->first, start), last = MIN(use->last, start + TABLE_PAGES - 1);

	for (; page <= last; page++) {
		uint16_t *state = &table->pages[page % TABLE_PAGES];

		if (*state && !(*state & USED)) {
			*state |= USED;
			use->sums->used_pages++;
		}
	}
}

/* What is used may be far more than what came in: no more tables are looked at than there are. */
static void use_pages(const struct file *file, struct file_site *sums, uint64_t page,
		      uint64_t count)
{
	struct use use = { .sums = sums, .first = page, .last = page + count - 1 };
	uint64_t number, last = use.last / TABLE_PAGES;

	if (!count || use.last < page)
		return;
	if (last - page / TABLE_PAGES >= g_hash_table_size(file->tables)) {
		g_hash_table_foreach(file->tables, use_table, &use);
		return;
	}
	for (number = page / TABLE_PAGES; number <= last; number++) {
		struct table *table = table_find(file, number * TABLE_PAGES);

		if (table)
			use_table(GSIZE_TO_POINTER(number), table, &use);
	}
}

/* ---- sweeps ---- */

/*
 * Read-ahead runs before what is wanted, and what it brought may be gone again when its turn comes:
 * the order is that of the pages that were wanted. A sweep goes on where the next one lies between
 * the last one and the end of what was brought in.
 */
static struct stream *stream_find(struct site *site, uint64_t wanted)
{
	struct stream *found = NULL;
	unsigned int i;

	for (i = 0; i < site->stream_count; i++) {
		struct stream *stream = &site->streams[i];

		if (wanted > stream->wanted && wanted <= stream->end + GAP_PAGES &&
		    (!found || stream->used > found->used))
			found = stream;
	}
	return found;
}

static struct stream *stream_new(struct site *site)
{
	struct stream *stream = &site->streams[0];
	unsigned int i;

	if (site->stream_count < STREAMS)
		stream = &site->streams[site->stream_count++];
	else
		for (i = 1; i < STREAMS; i++)
			if (site->streams[i].used < stream->used)
				stream = &site->streams[i];
	*stream = (struct stream){ 0 };
	return stream;
}

static void follow(struct site *site, const struct memtoll_fill *fill, uint64_t first,
		   uint64_t again)
{
	/* One request may bring several ranges, where pages between are there. */
	struct stream *stream =
		fill->requests ? stream_find(site, fill->first_wanted) : site->latest;

	if (stream && fill->requests)
		stream->weight++;
	if (!stream)
		stream = stream_new(site);
	stream->first_pages += first;
	stream->again_pages += again;
	if (fill->requests) {
		if (fill->last_wanted > fill->first_wanted)
			stream->weight += MIN(fill->requests - 1, WEIGHT_BELIEVED);
		stream->wanted = fill->last_wanted;
	}
	stream->weight = MIN(stream->weight, WEIGHT_BELIEVED);
	if (stream->weight >= WEIGHT_BELIEVED) {
		site->sums.first_sequential_pages += stream->first_pages;
		site->sums.again_sequential_pages += stream->again_pages;
		stream->first_pages = 0;
		stream->again_pages = 0;
	}
	stream->end = MAX(stream->end, fill->start + fill->pages);
	stream->used = ++site->clock;
	site->latest = stream;
}

/* ---- records ---- */

uint32_t file_pages_fill(struct file_pages *pages, const struct memtoll_fill *fill)
{
	struct file *file = file_get(pages, fill);
	struct site *site = site_of(pages, file, fill->flags);
	struct file_site *sums = &site->sums;
	uint64_t first = sums->first_pages, again = sums->again_pages, page;

	for (page = fill->start; page < fill->start + fill->pages; page++) {
		struct table *table = table_get(pages, file, page);

		if (table)
			page_comes(sums, &table->pages[page % TABLE_PAGES]);
		else
			sums->untracked_pages++;
	}
	sums->requests += fill->requests;
	follow(site, fill, sums->first_pages - first, sums->again_pages - again);
	/* Those that were wanted are used, whenever what used them is told of. */
	if (fill->requests) {
		use_pages(file, sums, fill->first_wanted, 1);
		use_pages(file, sums, fill->last_wanted, 1);
	}
	return sums->number;
}

void file_pages_use(struct file_pages *pages, uint32_t dev, uint64_t inode, uint32_t cause,
		    uint64_t page, uint64_t count)
{
	struct file *file = file_find(pages, dev, inode);

	if (file)
		use_pages(file, &site_of(pages, file, cause)->sums, page, count);
}

void file_pages_each(struct file_pages *pages, file_site_fn *on_site, void *context)
{
	guint i;

	for (i = 0; i < pages->changed->len; i++) {
		struct site *site = g_ptr_array_index(pages->changed, i);

		site->changed = false;
		on_site(context, &site->sums);
	}
	g_ptr_array_set_size(pages->changed, 0);
}
