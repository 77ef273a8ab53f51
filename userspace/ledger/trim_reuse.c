// SPDX-License-Identifier: GPL-2.0
#include "ledger/trim_reuse.h"

#include <glib.h>

#define PAGE 4096ULL
#define PAGES_MAX (4U << 20) /* of a process: 16 GiB, a byte for each */

struct span {
	uint64_t start;
	uint64_t end;
	size_t first; /* number of its first page */
};

struct base {
	uint64_t since_ns;
	GArray *spans; /* of struct span, ascending */
	uint8_t *used; /* by page */
	size_t pages;
	size_t count; /* that are used */
};

struct trim_reuse {
	GHashTable *bases; /* pid -> struct base */
};

static void free_base(gpointer data)
{
	struct base *base = data;

	g_array_unref(base->spans);
	g_free(base->used);
	g_free(base);
}

struct trim_reuse *trim_reuse_new(void)
{
	struct trim_reuse *reuse = g_new0(struct trim_reuse, 1);

	reuse->bases = g_hash_table_new_full(NULL, NULL, NULL, free_base);
	return reuse;
}

void trim_reuse_free(struct trim_reuse *reuse)
{
	if (!reuse)
		return;
	g_hash_table_destroy(reuse->bases);
	g_free(reuse);
}

static struct base *base_of(const struct trim_reuse *reuse, pid_t pid)
{
	return g_hash_table_lookup(reuse->bases, GINT_TO_POINTER(pid));
}

void trim_reuse_begin(struct trim_reuse *reuse, pid_t pid, uint64_t now_ns,
		      const struct free_range *ranges, size_t count)
{
	struct base *base = g_new0(struct base, 1);
	size_t i;

	base->since_ns = now_ns;
	base->spans = g_array_new(FALSE, FALSE, sizeof(struct span));
	for (i = 0; i < count; i++) {
		const struct span span = { ranges[i].start, ranges[i].end, base->pages };
		const uint64_t pages = (span.end - span.start) / PAGE;

		if (!ranges[i].resident || span.end <= span.start ||
		    pages > PAGES_MAX - base->pages)
			continue;
		g_array_append_val(base->spans, span);
		base->pages += pages;
	}
	base->used = g_malloc0(MAX(base->pages, 1));
	g_hash_table_replace(reuse->bases, GINT_TO_POINTER(pid), base);
}

/* The first span that ends behind address. */
static guint first_behind(const struct base *base, uint64_t address)
{
	guint low = 0, high = base->spans->len;

	while (low < high) {
		const guint middle = low + (high - low) / 2;

		if (g_array_index(base->spans, struct span, middle).end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Pages of [start, end), also those that are in it in part. */
static void use(struct base *base, uint64_t start, uint64_t end)
{
	guint i;

	for (i = first_behind(base, start); i < base->spans->len; i++) {
		const struct span *span = &g_array_index(base->spans, struct span, i);
		uint64_t at;

		if (span->start >= end)
			return;
		for (at = MAX(span->start, start & ~(PAGE - 1)); at < MIN(span->end, end);
		     at += PAGE) {
			uint8_t *used = &base->used[span->first + (at - span->start) / PAGE];

			base->count += !*used;
			*used = 1;
		}
	}
}

void trim_reuse_look(struct trim_reuse *reuse, pid_t pid, const struct free_range *ranges,
		     size_t count)
{
	struct base *base = base_of(reuse, pid);
	uint64_t at = 0;
	size_t i;

	if (!base)
		return;
	for (i = 0; i < count; i++) {
		if (ranges[i].start > at)
			use(base, at, ranges[i].start);
		at = MAX(at, ranges[i].end);
	}
	use(base, at, UINT64_MAX);
}

void trim_reuse_block(struct trim_reuse *reuse, const struct memtoll_block *block)
{
	struct base *base;

	if (!block->addr || !block->size || !g_hash_table_size(reuse->bases))
		return;
	base = base_of(reuse, (pid_t)block->tgid);
	if (base && base->count < base->pages && block->size <= UINT64_MAX - block->addr)
		use(base, block->addr, block->addr + block->size);
}

void trim_reuse_forget(struct trim_reuse *reuse, pid_t pid)
{
	g_hash_table_remove(reuse->bases, GINT_TO_POINTER(pid));
}

bool trim_reuse_get(const struct trim_reuse *reuse, pid_t pid, struct trim_reused *reused)
{
	const struct base *base = base_of(reuse, pid);

	if (!base)
		return false;
	*reused = (struct trim_reused){ base->since_ns, base->pages, base->count };
	return true;
}
