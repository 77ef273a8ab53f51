// SPDX-License-Identifier: GPL-2.0
/*
 * page_access.c. Hash tables are GLib's. Returns are counted per page in tables of 2 MiB, of
 * addresses or of shared memory, that exist only where a page has come back; sweeps are followed per site by where they
 * would go on, because runs of several threads, and major and minor runs of one, arrive mixed.
 */
#include "ledger/page_access.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "base/hash.h"
#include "bpf/wire/pages.h"
#include "events/passed.h"
#include "events/refined.h"
#include "events/run_file.h"

#define PAGE MEMTOLL_PAGE_SIZE
#define TABLE_PAGES 512
#define TABLE_SHIFT 21
#define TABLE_BYTES (1ULL << TABLE_SHIFT)

#define STREAMS 8

/* A sweep may leave out this many pages: resident ones do not fault. */
#define GAP_PAGES 64

/*
 * In a small block every page lies within 64 of some stream's end. So a gap must be small against
 * the addresses the site has used, or be no larger than what the stream has swept already; and a
 * stream of single pages is believed only after several continuations, where adjacent ones weigh
 * more, since chance seldom makes them. Of random orders, 600 of each size from 251 to 2053 pages
 * gave at most 3.2 % sequential; of 101 pages the mean was 1 %, 5 in 600 were above 10 %.
 */
#define GAP_SHARE 32
#define WEIGHT_ADJACENT 2
#define WEIGHT_GAP 1
#define WEIGHT_BELIEVED 8

struct return_table {
	uint16_t returns[TABLE_PAGES];
	unsigned int used; /* pages whose count is not 0 */
};

enum direction { DIRECTION_UNKNOWN, DIRECTION_UP, DIRECTION_DOWN };

struct stream {
	uint64_t low; /* the newest piece of the sweep: [low, high) */
	uint64_t high;
	uint64_t used;	      /* site->clock when it was last continued */
	uint64_t pages;	      /* swept so far */
	uint64_t first_pages; /* waiting until the stream is believed */
	uint64_t in_pages;
	unsigned int weight;
	enum direction direction;
};

struct site {
	struct access access;
	bool changed;
	uint64_t low; /* addresses used so far: [low, high) */
	uint64_t high;
	uint64_t clock;
	unsigned int stream_count;
	struct stream streams[STREAMS];
};

struct process_access {
	GHashTable *tables;   /* page / TABLE_PAGES -> struct return_table */
	GHashTable *sites;    /* struct site, by its access -> itself */
	GHashTable *segments; /* struct segment that pages have returned to -> itself; or NULL */
	bool exited;
};

/*
 * Pages of shared memory, by their place in it: whoever's fault brings one back, and wherever that
 * process has it mapped, it is the same page. Unmapping it leaves the page where it is.
 */
struct segment {
	struct process_access pages; /* its tables alone */
	uint64_t key;
	unsigned int users;
};

struct accesses {
	GHashTable *processes; /* pid -> struct process_access */
	GHashTable *segments;  /* struct segment, by its key */
	GPtrArray *changed;    /* struct site */
	GArray *exited;	       /* pid_t */
	size_t table_count;
	uint64_t untracked_pages;
};

static guint site_hash(gconstpointer key)
{
	const struct access *access = key;
	uint64_t hash = access->allocated_stack ^ access->inode;

	hash = (hash ^ (uint64_t)access->dev << 16 ^ access->area << 8 ^ access->allocated_fn) *
	       HASH_FACTOR;
	return hash ^ hash >> 32;
}

static gboolean site_equal(gconstpointer a, gconstpointer b)
{
	const struct access *x = a, *y = b;

	return x->allocated_stack == y->allocated_stack && x->inode == y->inode &&
	       x->dev == y->dev && x->area == y->area && x->allocated_fn == y->allocated_fn;
}

static void process_free(gpointer data)
{
	struct process_access *process = data;

	g_hash_table_destroy(process->tables);
	g_hash_table_destroy(process->sites);
	if (process->segments)
		g_hash_table_destroy(process->segments);
	g_free(process);
}

static void segment_free(gpointer data)
{
	struct segment *segment = data;

	g_hash_table_destroy(segment->pages.tables);
	g_free(segment);
}

struct accesses *accesses_new(void)
{
	struct accesses *accesses = g_new0(struct accesses, 1);

	accesses->processes = g_hash_table_new_full(NULL, NULL, NULL, process_free);
	accesses->segments = g_hash_table_new_full(NULL, NULL, NULL, segment_free);
	accesses->changed = g_ptr_array_new();
	accesses->exited = g_array_new(FALSE, FALSE, sizeof(pid_t));
	return accesses;
}

void accesses_free(struct accesses *accesses)
{
	if (!accesses)
		return;
	g_hash_table_destroy(accesses->processes);
	g_hash_table_destroy(accesses->segments);
	g_ptr_array_free(accesses->changed, TRUE);
	g_array_free(accesses->exited, TRUE);
	g_free(accesses);
}

static struct process_access *process_find(const struct accesses *accesses, pid_t pid)
{
	return g_hash_table_lookup(accesses->processes, GINT_TO_POINTER(pid));
}

static struct process_access *process_get(struct accesses *accesses, pid_t pid)
{
	struct process_access *process = process_find(accesses, pid);

	if (!process) {
		process = g_new0(struct process_access, 1);
		process->tables = g_hash_table_new_full(NULL, NULL, NULL, g_free);
		process->sites = g_hash_table_new_full(site_hash, site_equal, NULL, g_free);
		g_hash_table_insert(accesses->processes, GINT_TO_POINTER(pid), process);
	}
	return process;
}

static struct site *site_get(struct process_access *process, const struct memtoll_run *part,
			     uint8_t allocated_fn, uint64_t allocated_stack)
{
	struct access key = { .pid = part->tgid };
	struct site *site;

	if (allocated_fn) {
		key.allocated_fn = allocated_fn;
		key.allocated_stack = allocated_stack;
		if (part->area == AREA_SHARED)
			key.area = AREA_SHARED;
	} else {
		key.area = part->area;
		key.inode = run_file_inode(part);
		key.dev = part->dev;
	}
	site = g_hash_table_lookup(process->sites, &key);
	if (!site) {
		site = g_new0(struct site, 1);
		site->access = key;
		site->low = UINT64_MAX;
		g_hash_table_insert(process->sites, &site->access, site);
	}
	return site;
}

/* ---- returns ---- */

static struct return_table *table_find(const struct process_access *process, uint64_t unit)
{
	return g_hash_table_lookup(process->tables, GSIZE_TO_POINTER(unit));
}

/* NULL when as many tables are in use as there may be. */
static struct return_table *table_get(struct accesses *accesses, struct process_access *process,
				      uint64_t unit)
{
	struct return_table *table = table_find(process, unit);

	if (table || accesses->table_count >= RETURN_TABLES_MAX)
		return table;
	table = g_new0(struct return_table, 1);
	g_hash_table_insert(process->tables, GSIZE_TO_POINTER(unit), table);
	accesses->table_count++;
	return table;
}

static void table_remove(struct accesses *accesses, struct process_access *process, uint64_t unit)
{
	g_hash_table_remove(process->tables, GSIZE_TO_POINTER(unit));
	accesses->table_count--;
}

static void tables_clear(struct accesses *accesses, struct process_access *process)
{
	accesses->table_count -= g_hash_table_size(process->tables);
	g_hash_table_remove_all(process->tables);
}

/* Not by its inode: that of System V shared memory is the segment's number, 0 at first. */
static bool is_shared(const struct memtoll_run *part)
{
	return part->area == AREA_SHARED && part->dev;
}

/* Whose tables have the pages of the part: the process's, or those of the shared memory it is in. */
static struct process_access *pages_of(struct accesses *accesses, struct process_access *process,
				       const struct memtoll_run *part)
{
	uint64_t key = part->inode ^ (uint64_t)part->dev << 40;
	struct segment *segment;

	if (!is_shared(part))
		return process;
	segment = g_hash_table_lookup(accesses->segments, GSIZE_TO_POINTER(key));
	if (!segment) {
		segment = g_new0(struct segment, 1);
		segment->key = key;
		segment->pages.tables = g_hash_table_new_full(NULL, NULL, NULL, g_free);
		g_hash_table_insert(accesses->segments, GSIZE_TO_POINTER(key), segment);
	}
	if (!process->segments)
		process->segments = g_hash_table_new(NULL, NULL);
	segment->users += g_hash_table_add(process->segments, segment);
	return &segment->pages;
}

/* The process uses no shared memory any more: what nobody uses is forgotten. */
static void leave_segments(struct accesses *accesses, struct process_access *process)
{
	GHashTableIter iter;
	gpointer key;

	if (!process->segments)
		return;
	g_hash_table_iter_init(&iter, process->segments);
	while (g_hash_table_iter_next(&iter, &key, NULL)) {
		struct segment *segment = key;

		if (--segment->users)
			continue;
		tables_clear(accesses, &segment->pages);
		g_hash_table_remove(accesses->segments, GSIZE_TO_POINTER(segment->key));
	}
	g_hash_table_remove_all(process->segments);
}

/* The units of [start, end) that have a table. Free with g_array_free. */
static GArray *units_of(const struct process_access *process, uint64_t start, uint64_t end)
{
	uint64_t unit = start >> TABLE_SHIFT, last = (end - 1) >> TABLE_SHIFT;
	GArray *units = g_array_new(FALSE, FALSE, sizeof(uint64_t));
	GHashTableIter iter;
	gpointer key;

	if (last - unit < g_hash_table_size(process->tables)) {
		for (; unit <= last; unit++)
			if (table_find(process, unit))
				g_array_append_val(units, unit);
		return units;
	}
	/* Fewer tables than places to look: a reservation of terabytes goes. */
	g_hash_table_iter_init(&iter, process->tables);
	while (g_hash_table_iter_next(&iter, &key, NULL)) {
		uint64_t found = GPOINTER_TO_SIZE(key);

		if (found >= unit && found <= last)
			g_array_append_val(units, found);
	}
	return units;
}

static void count_returns(struct accesses *accesses, struct process_access *process,
			  struct access *access, const struct memtoll_run *part)
{
	uint64_t page = is_shared(part) ? part->file_page : part->address / PAGE;
	uint64_t left = part->pages;

	while (left) {
		uint64_t at = page % TABLE_PAGES, count = MIN(left, TABLE_PAGES - at), i;
		struct return_table *table = table_get(accesses, process, page / TABLE_PAGES);

		if (!table) {
			access->untracked_pages += count;
			accesses->untracked_pages += count;
		}
		for (i = at; table && i < at + count; i++) {
			if (!table->returns[i]) {
				table->used++;
				access->distinct_pages++;
			}
			if (table->returns[i] < UINT16_MAX)
				table->returns[i]++;
			access->max_returns = MAX(access->max_returns, table->returns[i]);
		}
		page += count;
		left -= count;
	}
}

static void forget_in_table(struct return_table *table, uint64_t from, uint64_t to)
{
	for (; from < to; from++) {
		table->used -= table->returns[from] != 0;
		table->returns[from] = 0;
	}
}

static void forget_pages(struct accesses *accesses, struct process_access *process, uint64_t start,
			 uint64_t end)
{
	GArray *units;
	guint i;

	if (!g_hash_table_size(process->tables))
		return;
	units = units_of(process, start, end);
	for (i = 0; i < units->len; i++) {
		uint64_t unit = g_array_index(units, uint64_t, i), base = unit << TABLE_SHIFT;
		struct return_table *table = table_find(process, unit);
		uint64_t from = start > base ? (start - base) / PAGE : 0;
		uint64_t to = MIN((end - base + PAGE - 1) / PAGE, TABLE_PAGES);

		forget_in_table(table, from, to);
		if (!table->used)
			table_remove(accesses, process, unit);
	}
	g_array_free(units, TRUE);
}

void accesses_forget(struct accesses *accesses, pid_t pid, uint64_t start, uint64_t end)
{
	struct process_access *process = process_find(accesses, pid);

	if (process && start < end)
		forget_pages(accesses, process, start, end);
}

/* Where the new place cannot be followed a page's count is lost: it begins anew. */
static void move_page(struct accesses *accesses, struct process_access *process,
		      struct return_table *table, uint64_t index, uint64_t address)
{
	struct return_table *into;

	if (!table->returns[index])
		return;
	into = table_get(accesses, process, address >> TABLE_SHIFT);
	if (into) {
		uint16_t *returns = &into->returns[address / PAGE % TABLE_PAGES];

		into->used += !*returns;
		*returns = table->returns[index];
	}
	table->returns[index] = 0;
	table->used--;
}

/* A table that moves whole to a place of the same alignment is hung there, not copied. */
static bool move_table(struct process_access *process, uint64_t unit, uint64_t base, uint64_t from,
		       uint64_t to, uint64_t end)
{
	uint64_t new_unit = (to + (base - from)) >> TABLE_SHIFT;
	gpointer table;

	if ((from - to) % TABLE_BYTES || base < from || base + TABLE_BYTES > end ||
	    table_find(process, new_unit))
		return false;
	g_hash_table_steal_extended(process->tables, GSIZE_TO_POINTER(unit), NULL, &table);
	g_hash_table_insert(process->tables, GSIZE_TO_POINTER(new_unit), table);
	return true;
}

void accesses_move(struct accesses *accesses, pid_t pid, uint64_t from, uint64_t to, uint64_t bytes)
{
	struct process_access *process = process_find(accesses, pid);
	uint64_t end = from + bytes;
	GArray *units;
	guint i;

	if (!process || !g_hash_table_size(process->tables) || !bytes || from == to)
		return;
	accesses_forget(accesses, pid, to, to + bytes);
	units = units_of(process, from, end);
	for (i = 0; i < units->len; i++) {
		uint64_t unit = g_array_index(units, uint64_t, i), base = unit << TABLE_SHIFT;
		uint64_t index = from > base ? (from - base) / PAGE : 0;
		uint64_t last = MIN((end - base) / PAGE, TABLE_PAGES);
		struct return_table *table = table_find(process, unit);

		if (move_table(process, unit, base, from, to, end))
			continue;
		for (; index < last; index++)
			move_page(accesses, process, table, index, base + index * PAGE - from + to);
		if (!table->used)
			table_remove(accesses, process, unit);
	}
	g_array_free(units, TRUE);
}

/* ---- sweeps ---- */

/* Bytes left out between the stream's newest piece and [low, high), or UINT64_MAX. */
static uint64_t gap_of(const struct stream *stream, uint64_t low, uint64_t high, bool *up)
{
	*up = low >= stream->high;
	if (*up && stream->direction != DIRECTION_DOWN)
		return low - stream->high;
	if (high <= stream->low && stream->direction != DIRECTION_UP)
		return stream->low - high;
	return UINT64_MAX;
}

/* The stream that [low, high) continues best: the nearest, of equals the latest; or NULL. */
static struct stream *stream_find(struct site *site, uint64_t low, uint64_t high, uint64_t *gap,
				  bool *up)
{
	uint64_t used = site->high > site->low ? (site->high - site->low) / PAGE : 0;
	struct stream *found = NULL;
	unsigned int i;

	for (i = 0; i < site->stream_count; i++) {
		struct stream *stream = &site->streams[i];
		uint64_t most = MIN(MAX(used / GAP_SHARE, stream->pages), GAP_PAGES);
		bool upward;
		uint64_t bytes = gap_of(stream, low, high, &upward);

		if (bytes > most * PAGE ||
		    (found && (bytes > *gap || (bytes == *gap && stream->used < found->used))))
			continue;
		found = stream;
		*gap = bytes;
		*up = upward;
	}
	return found;
}

static struct stream *stream_new(struct site *site)
{
	struct stream *stream = &site->streams[0];
	unsigned int i;

	if (site->stream_count < STREAMS) {
		stream = &site->streams[site->stream_count++];
	} else {
		for (i = 1; i < STREAMS; i++)
			if (site->streams[i].used < stream->used)
				stream = &site->streams[i];
	}
	memset(stream, 0, sizeof(*stream));
	return stream;
}

/*
 * How many pages of the part are known to be of a sweep, the stream's waiting pages included:
 * what is added to *first or *in. Pages after the part's first fault are; those of the first fault
 * are when the part continues a stream that is believed. One fault may map a huge page: its pages
 * did not come in a sweep.
 */
static void follow_sweep(struct site *site, const struct memtoll_run *part, bool back)
{
	uint64_t low = part->address, high = low + part->pages * PAGE, gap = 0;
	uint64_t faults = CLAMP(part->faults, 1, part->pages), once = part->pages / faults;
	uint64_t *sequential =
		back ? &site->access.in_sequential_pages : &site->access.first_sequential_pages;
	struct stream *stream;
	bool up = true;

	stream = stream_find(site, low, high, &gap, &up);
	*sequential += part->pages - once;
	if (stream) {
		if (back)
			stream->in_pages += once;
		else
			stream->first_pages += once;
		stream->direction = up ? DIRECTION_UP : DIRECTION_DOWN;
		stream->weight += gap ? WEIGHT_GAP : WEIGHT_ADJACENT;
	} else {
		stream = stream_new(site);
	}
	if (faults > 1 && stream->direction == DIRECTION_UNKNOWN)
		stream->direction = DIRECTION_UP;
	/* Enough is enough: the weight must not overflow. */
	stream->weight = MIN(stream->weight + WEIGHT_ADJACENT * MIN(faults - 1, WEIGHT_BELIEVED),
			     WEIGHT_BELIEVED);
	if (stream->weight >= WEIGHT_BELIEVED) {
		site->access.first_sequential_pages += stream->first_pages;
		site->access.in_sequential_pages += stream->in_pages;
		stream->first_pages = 0;
		stream->in_pages = 0;
	}
	stream->pages += part->pages;
	stream->low = low;
	stream->high = high;
	stream->used = ++site->clock;
	site->low = MIN(site->low, low);
	site->high = MAX(site->high, high);
}

static bool is_swap_in(uint8_t fault_class)
{
	return fault_class == FAULT_SWAP || fault_class == FAULT_SWAP_ZSWAP ||
	       fault_class == FAULT_SWAP_ZERO || fault_class == FAULT_SWAP_ZRAM;
}

static void site_changed(struct accesses *accesses, struct site *site)
{
	if (site->changed)
		return;
	site->changed = true;
	g_ptr_array_add(accesses->changed, site);
}

void accesses_charge(struct accesses *accesses, const struct memtoll_run *part,
		     uint8_t allocated_fn, uint64_t allocated_stack)
{
	bool swapped = is_swap_in(part->fault_class);
	struct process_access *process;
	struct site *site;

	if (!part->pages || (!swapped && !fault_clears(part->fault_class)))
		return;
	process = process_get(accesses, part->tgid);
	site = site_get(process, part, allocated_fn, allocated_stack);
	if (swapped) {
		site->access.in_pages += part->pages;
		count_returns(accesses, pages_of(accesses, process, part), &site->access, part);
	} else {
		site->access.first_pages += with_passed(part, part->pages);
	}
	/*
	 * Where others lie between runs, these say nothing of the order: but a run of many pages is
	 * in order itself, and so are those that it speaks for.
	 */
	if (!part->passed)
		follow_sweep(site, part, swapped);
	else if (!swapped && part->faults >= WEIGHT_BELIEVED)
		site->access.first_sequential_pages += with_passed(part, part->pages);
	site_changed(accesses, site);
}

void accesses_unspoken(struct accesses *accesses, const struct memtoll_run *part,
		       uint8_t allocated_fn, uint64_t allocated_stack)
{
	struct process_access *process;
	struct site *site;

	if (!part->pages || !fault_clears(part->fault_class))
		return;
	process = process_get(accesses, part->tgid);
	site = site_get(process, part, allocated_fn, allocated_stack);
	/* In order as far as those were that are known. */
	if (site->access.first_pages)
		site->access.first_sequential_pages += (unsigned __int128)part->pages *
						       site->access.first_sequential_pages /
						       site->access.first_pages;
	site->access.first_pages += part->pages;
	site_changed(accesses, site);
}

/* ---- processes ---- */

void accesses_restart(struct accesses *accesses, pid_t pid)
{
	struct process_access *process = process_find(accesses, pid);
	GHashTableIter iter;
	gpointer value;

	if (!process)
		return;
	process->exited = false;
	tables_clear(accesses, process);
	leave_segments(accesses, process);
	g_hash_table_iter_init(&iter, process->sites);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		struct site *site = value;

		site->stream_count = 0;
		site->low = UINT64_MAX;
		site->high = 0;
	}
}

void accesses_exit(struct accesses *accesses, pid_t pid)
{
	struct process_access *process = process_find(accesses, pid);

	if (!process || process->exited)
		return;
	tables_clear(accesses, process);
	leave_segments(accesses, process);
	process->exited = true;
	g_array_append_val(accesses->exited, pid);
}

void accesses_each(struct accesses *accesses, access_fn *on_access, void *context)
{
	guint i;

	for (i = 0; i < accesses->changed->len; i++) {
		struct site *site = g_ptr_array_index(accesses->changed, i);

		site->changed = false;
		on_access(context, &site->access);
	}
	g_ptr_array_set_size(accesses->changed, 0);
	for (i = 0; i < accesses->exited->len; i++) {
		pid_t pid = g_array_index(accesses->exited, pid_t, i);
		struct process_access *process = process_find(accesses, pid);

		/* A new process may have got the same id. */
		if (process && process->exited) {
			tables_clear(accesses, process);
			leave_segments(accesses, process);
			g_hash_table_remove(accesses->processes, GINT_TO_POINTER(pid));
		}
	}
	g_array_set_size(accesses->exited, 0);
}

uint64_t accesses_untracked(const struct accesses *accesses)
{
	return accesses->untracked_pages;
}
