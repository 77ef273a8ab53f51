// SPDX-License-Identifier: GPL-2.0
#include "hold/heap_sum.h"

#include "hold/chunk_header.h"
#include "hold/locked_ranges.h"

#define CHUNK_STRUCT 48ULL /* sizeof(struct malloc_chunk) */
/* Below less than this no end of a heap matters. */
#define BELOW_LEAST (16 * VIEW_PAGE)

/* Free chunks side by side, as malloc_consolidate() joins them. */
struct run {
	uint64_t start;
	uint64_t end;
	uint32_t before;
	bool top;
};

struct summing {
	const struct heap_walk *walk;
	const struct heap_chunks *chunks;
	struct arena_sum *sum;
	GHashTable *pins; /* size -> struct pin */
	struct heap_sum *all;
	uint64_t below;	    /* in this heap: resident bytes of the largest free stretch, */
	uint64_t below_end; /* and where it ends */
};

struct page_bytes arena_free(const struct arena_sum *sum)
{
	struct page_bytes bytes = { 0 };
	unsigned int i;

	for (i = CHUNK_LIVE + 1; i < CHUNK_KINDS; i++)
		page_bytes_join(&bytes, &sum->bytes[i]);
	return bytes;
}

/* Pages [start, end) would be given back: join them to those before, where both are as resident. */
static void keep_range(const struct summing *summing, uint64_t start, uint64_t end)
{
	const struct page_range *pages = &summing->chunks->pages;
	GArray *ranges = summing->all->trim_ranges;
	uint64_t at;

	for (at = start; at < end; at += VIEW_PAGE) {
		const struct trim_range range = {
			.start = at,
			.end = at + VIEW_PAGE,
			.resident = pages->states[(at - pages->first) / VIEW_PAGE] == PAGE_RESIDENT,
		};
		struct trim_range *last =
			ranges->len ? &g_array_index(ranges, struct trim_range, ranges->len - 1) :
				      NULL;

		if (last && last->end == at && last->resident == range.resident)
			last->end = range.end;
		else if (ranges->len < TRIM_RANGES_MAX)
			g_array_append_val(ranges, range);
		else
			summing->all->trim_ranges_left++;
	}
}

/* systrim(): whole pages from the end, which is the program break. */
static void trim_top(const struct summing *summing, const struct run *run, struct page_bytes *trim)
{
	uint64_t page = MAX(summing->walk->heaps->numbers.thp_page, VIEW_PAGE), bytes;

	if (page & (page - 1) || run->end - run->start <= SMALL_LEAST + 1)
		return;
	bytes = (run->end - run->start - SMALL_LEAST - 1) & ~(page - 1);
	page_bytes_add(trim, &summing->chunks->pages, run->end - bytes, run->end);
	page_bytes_join(&summing->sum->trim_top, trim);
	keep_range(summing, run->end - bytes, run->end & ~(VIEW_PAGE - 1));
}

/*
 * mtrim(): whole pages behind the chunk's own fields, by one madvise(2), which ends at the first
 * mapping that is locked. sbrk(2) takes no notice of that.
 */
static void trim_middle(const struct summing *summing, const struct run *run,
			struct page_bytes *trim, struct page_bytes *locked)
{
	uint64_t from = (run->start + CHUNK_STRUCT + VIEW_PAGE - 1) & ~(VIEW_PAGE - 1);
	uint64_t end = run->end & ~(VIEW_PAGE - 1), open;

	if (run->end - run->start <= VIEW_PAGE - 1 + CHUNK_STRUCT || run->end <= from)
		return;
	open = locked_ranges_first(summing->walk->locked, from, end);
	page_bytes_add(trim, &summing->chunks->pages, from, open);
	keep_range(summing, from, open);
	page_bytes_add(locked, &summing->chunks->pages, open, end);
}

static void count_pin(const struct summing *summing, const struct run *run, uint64_t bytes)
{
	const uint64_t size = run->before;
	struct pin *pin;

	if (!size || !bytes)
		return;
	pin = g_hash_table_lookup(summing->pins, &size);
	if (!pin) {
		if (g_hash_table_size(summing->pins) >= PINS_MAX)
			return;
		pin = g_new0(struct pin, 1);
		pin->size = size;
		g_hash_table_insert(summing->pins, &pin->size, pin);
	}
	pin->chunks++;
	pin->bytes += bytes;
}

/* The live chunk before what is free; false: none, or it is one of a thread's cache. */
static bool live_before(const struct summing *summing, const struct run *run, uint64_t *address)
{
	const struct kept_chunk *kept;

	if (!run->before || run->before == UINT32_MAX)
		return false;
	*address = run->start - run->before;
	kept = heap_walk_find(summing->walk, *address);
	return !kept || kept->kind == CHUNK_LIVE;
}

static void keep_pin(const struct summing *summing, const struct run *run, uint64_t bytes)
{
	struct pinning_block block = { .size = run->before, .bytes = bytes };

	if (!bytes || !live_before(summing, run, &block.address))
		return;
	block.address += CHUNK_HEADER;
	pinning_add(&summing->all->pinning, &block);
}

/*
 * The heap's top begins: what keeps what is free below from joining it. From the end of a main heap
 * that does not end at the program break nothing goes back: of mappings, and where others took
 * memory by sbrk(2) behind it.
 */
static void keep_end(const struct summing *summing, const struct run *run)
{
	struct pinning_end end = {
		.size = run->before,
		.below = summing->below,
		.above = run->start - summing->below_end,
	};

	if ((summing->chunks->heap->main && !summing->chunks->heap->brk) ||
	    end.below < BELOW_LEAST || end.above > end.below ||
	    !live_before(summing, run, &end.address))
		return;
	end.address += CHUNK_HEADER;
	g_array_append_val(summing->all->pinning.ends, end);
}

static void end_run(struct summing *summing, const struct run *run)
{
	struct page_bytes all = { 0 }, trim = { 0 }, locked = { 0 };
	uint64_t stays;
	struct arena_sum *sum = summing->sum;

	if (run->start == run->end)
		return;
	page_bytes_add(&all, &summing->chunks->pages, run->start, run->end);
	if (!run->top)
		trim_middle(summing, run, &trim, &locked);
	else if (summing->chunks->heap->brk)
		trim_top(summing, run, &trim);
	page_bytes_join(&sum->trim, &trim);
	page_bytes_join(&sum->locked, &locked);
	if (run->top) {
		keep_end(summing, run);
		return;
	}
	stays = all.resident - trim.resident - locked.resident;
	count_pin(summing, run, stays);
	keep_pin(summing, run, stays);
	if (all.resident > summing->below) {
		summing->below = all.resident;
		summing->below_end = run->end;
	}
	if (run->end < summing->chunks->end_of_live && run->end - run->start > sum->largest) {
		sum->largest = run->end - run->start;
		sum->above = summing->chunks->end_of_live - run->end;
	}
}

static bool joins(enum chunk_kind kind)
{
	return kind != CHUNK_LIVE && kind != CHUNK_CACHED;
}

static void sum_runs(struct summing *summing)
{
	const struct kept_chunk *kept = (const void *)summing->walk->kept->data;
	struct run run = { 0 };
	size_t i;

	summing->below = 0;
	for (i = summing->chunks->kept_first; i < summing->chunks->kept_end; i++) {
		if (!joins(kept[i].kind))
			continue;
		if (kept[i].address != run.end || run.top) {
			end_run(summing, &run);
			run = (struct run){ kept[i].address, kept[i].address, kept[i].before,
					    false };
		}
		run.end += kept[i].size;
		run.top |= kept[i].kind == CHUNK_TOP;
	}
	end_run(summing, &run);
}

static void join_sums(struct arena_sum *sum, const struct heap_chunks *chunks)
{
	unsigned int i;

	sum->heaps++;
	for (i = 0; i < CHUNK_KINDS; i++) {
		sum->counts[i] += chunks->counts[i];
		page_bytes_join(&sum->bytes[i], &chunks->bytes[i]);
	}
	page_bytes_join(&sum->overhead, &chunks->overhead);
	page_bytes_join(&sum->unread, &chunks->unread);
	page_bytes_join(&sum->hidden, &chunks->hidden);
	page_bytes_join(&sum->unfollowed, &chunks->unfollowed);
}

static void join_arenas(struct arena_sum *all, const struct arena_sum *arena)
{
	unsigned int i;

	all->heaps += arena->heaps;
	all->threads += arena->threads;
	all->system_bytes += arena->system_bytes;
	for (i = 0; i < CHUNK_KINDS; i++) {
		all->counts[i] += arena->counts[i];
		page_bytes_join(&all->bytes[i], &arena->bytes[i]);
	}
	page_bytes_join(&all->overhead, &arena->overhead);
	page_bytes_join(&all->unread, &arena->unread);
	page_bytes_join(&all->hidden, &arena->hidden);
	page_bytes_join(&all->unfollowed, &arena->unfollowed);
	page_bytes_join(&all->trim, &arena->trim);
	page_bytes_join(&all->trim_top, &arena->trim_top);
	page_bytes_join(&all->locked, &arena->locked);
	if (arena->largest > all->largest) {
		all->largest = arena->largest;
		all->above = arena->above;
	}
}

static gint by_bytes(gconstpointer a, gconstpointer b)
{
	const struct pin *left = a, *right = b;

	if (left->bytes != right->bytes)
		return left->bytes < right->bytes ? 1 : -1;
	return left->size < right->size ? -1 : left->size > right->size;
}

static void take_pins(GHashTable *pins, GArray *sorted)
{
	GHashTableIter iterator;
	gpointer pin;

	g_hash_table_iter_init(&iterator, pins);
	while (g_hash_table_iter_next(&iterator, NULL, &pin))
		g_array_append_vals(sorted, pin, 1);
	g_array_sort(sorted, by_bytes);
}

static gint by_below(gconstpointer a, gconstpointer b)
{
	const struct pinning_end *left = a, *right = b;

	return left->below < right->below ? 1 : left->below > right->below ? -1 : 0;
}

/*
 * Where a list goes on among chunks that were not kept, any that may be in a list may be in that one,
 * those that were kept, too: it came from anywhere. Else all are as their headers say.
 */
static void doubt(struct heap_walk *walk, bool cut)
{
	struct kept_chunk *kept = (struct kept_chunk *)(void *)walk->kept->data;
	guint i;
	size_t k;

	for (i = 0; i < walk->chunks->len; i++) {
		struct heap_chunks *chunks = &g_array_index(walk->chunks, struct heap_chunks, i);
		struct page_bytes *live = &chunks->bytes[CHUNK_LIVE];

		if (!cut) {
			chunks->unfollowed = (struct page_bytes){ 0 };
			continue;
		}
		for (k = chunks->kept_first; k < chunks->kept_end; k++) {
			if (kept[k].kind != CHUNK_LIVE)
				continue;
			chunks->unfollowed_count++;
			page_bytes_add(&chunks->unfollowed, &chunks->pages, kept[k].address,
				       kept[k].address + kept[k].size);
		}
		chunks->counts[CHUNK_LIVE] -= chunks->unfollowed_count;
		live->bytes -= chunks->unfollowed.bytes;
		live->resident -= chunks->unfollowed.resident;
		live->swapped -= chunks->unfollowed.swapped;
	}
}

void heap_sum_make(struct heap_walk *walk, struct heap_sum *sum)
{
	struct summing summing = { .walk = walk, .all = sum };
	guint i;

	*sum = (struct heap_sum){ .left_out = walk->left_out };
	sum->arenas = g_array_new(FALSE, TRUE, sizeof(struct arena_sum));
	sum->pins = g_array_new(FALSE, FALSE, sizeof(struct pin));
	pinning_init(&sum->pinning);
	sum->heap_ranges = g_array_new(FALSE, FALSE, sizeof(struct trim_range));
	sum->trim_ranges = g_array_new(FALSE, FALSE, sizeof(struct trim_range));
	g_array_set_size(sum->arenas, walk->heaps->arenas->len);
	cached_chunks_resolve(walk, &sum->cached);
	doubt(walk, sum->cached.cut);
	summing.pins = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
	for (i = 0; i < walk->chunks->len; i++) {
		const struct heap_chunks *chunks =
			&g_array_index(walk->chunks, struct heap_chunks, i);

		const struct trim_range range = { chunks->heap->start, chunks->heap->end, false };

		g_array_append_val(sum->heap_ranges, range);
		summing.chunks = chunks;
		summing.sum = &g_array_index(sum->arenas, struct arena_sum, chunks->heap->arena);
		join_sums(summing.sum, chunks);
		sum_runs(&summing);
		sum->read_again += chunks->read_again;
		if (chunks->damages && (!sum->damages || (chunks->corrupt && !sum->corrupt)))
			sum->damage = chunks->damage;
		sum->corrupt |= chunks->corrupt;
		sum->damages += chunks->damages;
	}
	for (i = 0; i < sum->arenas->len; i++) {
		struct arena_sum *arena = &g_array_index(sum->arenas, struct arena_sum, i);
		const struct malloc_arena *state =
			&g_array_index(walk->heaps->arenas, struct malloc_arena, i);

		arena->threads = state->threads;
		arena->system_bytes = state->system_bytes;
		join_arenas(&sum->all, arena);
	}
	/* Whether what lies behind is live is not known. */
	if (sum->cached.cut)
		g_array_set_size(sum->pinning.ends, 0);
	take_pins(summing.pins, sum->pins);
	g_array_sort(sum->pinning.ends, by_below);
	g_hash_table_destroy(summing.pins);
}

void heap_sum_free(struct heap_sum *sum)
{
	g_clear_pointer(&sum->arenas, g_array_unref);
	g_clear_pointer(&sum->pins, g_array_unref);
	g_clear_pointer(&sum->heap_ranges, g_array_unref);
	g_clear_pointer(&sum->trim_ranges, g_array_unref);
	pinning_free(&sum->pinning);
}
