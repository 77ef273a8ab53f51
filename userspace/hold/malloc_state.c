// SPDX-License-Identifier: GPL-2.0
#include "hold/malloc_state.h"

#include <glib.h>
#include <string.h>

#include "hold/chunk_header.h"
#include "hold/malloc_numbers.h"
#include "hold/mapped_heaps.h"

#define DATA_BYTES (64ULL << 20) /* that are looked through */
#define BLOCK (1U << 20)
#define PAIRS (BIN_WORDS / 2)
#define EMPTY_LEAST 16	/* of 127; a real heap has some hundred */
#define NONCONTIGUOUS 2 /* NONCONTIGUOUS_BIT of the flags, which follow on the mutex, an int */
#define TAIL_WORDS 7 /* binmap[4], next, next_free, attached_threads, system_mem, max_system_mem */
#define CANDIDATES 16
#define TRIES_MAX 4096
#define STEPS_MAX (4 * ARENAS_MAX) /* along rings, of all candidates */
#define LOOKS_MAX 3
#define TOP_READS 4
#define SWAPPED_MOST 64 /* pages of a mapping that are brought back: glibc's data has some ten */

/*
 * From the struct's start to its bins: mutex, flags, have_fastchunks (2.27), ten fastbins (until
 * 2.42), top, last_remainder.
 */
static const uint64_t heads[] = { 112, 104, 24 };

struct place {
	uint64_t bins; /* address */
	uint64_t head;
	uint64_t words[BIN_WORDS + TAIL_WORDS];
};

static bool is_writable(const struct maps *maps, uint64_t address)
{
	const struct mapping *mapping = maps_find(maps, address);

	return mapping && mapping->write;
}

/* Bins as they may be, at words[0]; address: of it in the process; tries: how often yet. */
static bool may_be_bins(const struct maps *maps, const uint64_t *words, uint64_t address,
			unsigned int *tries)
{
	unsigned int empty = 0, i;

	for (i = 0; i < PAIRS; i++) {
		uint64_t self = address + i * 16 - 16, first = words[2 * i],
			 last = words[2 * i + 1];

		if (first == self && last == self)
			empty++;
		else if (first < VIEW_PAGE || last < VIEW_PAGE || first % 16 || last % 16 ||
			 first == self || last == self)
			return false;
	}
	if (empty < EMPTY_LEAST || ++*tries > TRIES_MAX)
		return false;
	for (i = 0; i < BIN_WORDS; i++)
		if (!is_writable(maps, words[i] + 16))
			return false;
	return true;
}

static uint64_t next_offset(uint64_t head)
{
	return head + BIN_WORDS * 8 + 16;
}

/* Whether the ring of arenas comes back, with this head. */
static bool has_ring(const struct memory_view *view, const struct place *place, uint64_t head,
		     unsigned int *steps)
{
	uint64_t start = place->bins - head, at = place->words[BIN_WORDS + 2];
	unsigned int i;

	for (i = 0; i < ARENAS_MAX && at != start; i++) {
		if (at % 8 || at < VIEW_PAGE || ++*steps > STEPS_MAX ||
		    !view->read(view->context, at + next_offset(head), &at, sizeof(at)))
			return false;
	}
	return at == start;
}

static bool has_head(const struct memory_view *view, struct place *place, unsigned int *steps)
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(heads); i++)
		if (has_ring(view, place, heads[i], steps)) {
			place->head = heads[i];
			return true;
		}
	return false;
}

/*
 * Memory, zeros where there is none: reading what was never touched would map it. swapped: what is
 * swapped out is read, too, where it is little.
 */
static uint64_t *read_there(const struct memory_view *view, uint64_t start, uint64_t size,
			    bool swapped)
{
	uint64_t count = size / VIEW_PAGE, out = 0, at, end;
	g_autofree uint8_t *states = g_malloc0(count);
	char *bytes = g_malloc0(size);

	if (!view->pages(view->context, start, count, states))
		return (uint64_t *)bytes;
	for (at = 0; at < count; at++)
		out += states[at] == PAGE_SWAPPED;
	swapped &= out <= SWAPPED_MOST;
	for (at = 0; at < count; at = MAX(end, at + 1)) {
		for (end = at; end < count && end - at < BLOCK / VIEW_PAGE; end++)
			if (states[end] != PAGE_RESIDENT &&
			    !(swapped && states[end] == PAGE_SWAPPED))
				break;
		/* Nothing is written where it fails. */
		if (end > at)
			view->read(view->context, start + at * VIEW_PAGE, bytes + at * VIEW_PAGE,
				   (end - at) * VIEW_PAGE);
	}
	return (uint64_t *)bytes;
}

/* Places in one mapping's memory. Number found so far. */
static size_t look_through(const struct memory_view *view, const struct maps *maps,
			   const struct mapping *mapping, bool swapped, struct place *places,
			   size_t count)
{
	uint64_t size = MIN(mapping->end - mapping->start, DATA_BYTES), at;
	unsigned int tries = 0;
	g_autofree uint64_t *words = read_there(view, mapping->start, size, swapped);

	for (at = 0; at + BIN_WORDS + TAIL_WORDS <= size / 8 && count < CANDIDATES; at++) {
		/* Most words are no pointers: the first pair decides. */
		if (words[at] < VIEW_PAGE || words[at] % 8 ||
		    !may_be_bins(maps, words + at, mapping->start + at * 8, &tries))
			continue;
		places[count].bins = mapping->start + at * 8;
		memcpy(places[count++].words, words + at, sizeof(places->words));
	}
	return count;
}

static bool read_arena(const struct memory_view *view, uint64_t address, uint64_t head,
		       struct malloc_arena *arena, uint64_t *next)
{
	uint64_t words[14 + BIN_WORDS + TAIL_WORDS];
	const uint64_t *bins = words + head / 8;
	size_t size = head + (BIN_WORDS + TAIL_WORDS) * 8;

	if (!view->read(view->context, address, words, size))
		return false;
	*arena = (struct malloc_arena){
		.address = address,
		.top_at = address + head - 16,
		.top = bins[-2],
		.threads = bins[BIN_WORDS + 4],
		.contiguous = !(words[0] >> 32 & NONCONTIGUOUS),
		.system_bytes = bins[BIN_WORDS + 5],
		.system_peak = bins[BIN_WORDS + 6],
	};
	if (head > 24)
		memcpy(arena->fast, bins - 2 - FAST_BINS, sizeof(arena->fast));
	memcpy(arena->bins, bins, sizeof(arena->bins));
	*next = bins[BIN_WORDS + 2];
	return true;
}

/* From address on, what is writable memory without a gap: its end. */
static uint64_t writable_end(const struct maps *maps, uint64_t address)
{
	const struct mapping *mapping = maps_find(maps, address);
	uint64_t end = address;

	for (; mapping && mapping < maps->entries + maps->count && mapping->write &&
	       mapping->start <= end;
	     mapping++)
		end = mapping->end;
	return end;
}

bool malloc_top_read(const struct memory_view *view, const struct malloc_arena *arena,
		     uint64_t from, uint64_t most, uint64_t *top, uint64_t *size)
{
	uint64_t now = 0;
	unsigned int i;

	for (i = 0; i < TOP_READS && (!i || now != *top); i++)
		if (!view->read(view->context, arena->top_at, top, sizeof(*top)) || *top < from ||
		    *top >= most || *top % 16 ||
		    !view->read(view->context, *top + 8, size, sizeof(*size)) ||
		    !view->read(view->context, arena->top_at, &now, sizeof(now)))
			return false;
	*size &= ~CHUNK_FLAGS;
	return *size >= 16 && *size % 16 == 0 && *size <= most - *top;
}

void malloc_heap_refresh(const struct memory_view *view, const struct malloc_heaps *found,
			 struct malloc_heap *heap, uint64_t most)
{
	const struct malloc_arena *arena =
		&g_array_index(found->arenas, struct malloc_arena, heap->arena);
	uint64_t top, size;

	heap->top = 0;
	heap->brk = false;
	if (!malloc_top_read(view, arena, heap->first, most, &top, &size))
		return;
	heap->top = top;
	heap->end = top + size;
	heap->brk = heap->main && heap->end + VIEW_PAGE > heap->mapped;
}

void malloc_heaps_take(struct malloc_heaps *found, const struct malloc_heap *heap)
{
	if (found->heaps->len < HEAPS_MAX && heap->first < heap->end)
		g_array_append_vals(found->heaps, heap, 1);
	else
		found->lost_heaps++;
}

/*
 * Where what sbrk(2) gave ends: behind it may be anything else, which older kernels call [heap], too,
 * if it begins there. limit: it may have grown to there since.
 */
static uint64_t break_of(const struct maps *maps, uint64_t start, uint64_t *limit)
{
	const struct mapping *mapping = maps_find(maps, start);
	const struct mapping *behind = maps->entries + maps->count;
	uint64_t end = start;

	for (; mapping && mapping < behind && mapping->write && !strcmp(mapping->path, "[heap]") &&
	       mapping->start <= end;
	     mapping++)
		end = mapping->end;
	*limit = MIN(end, UINT64_MAX - HEAP_BYTES) + HEAP_BYTES;
	if (mapping && mapping < behind)
		*limit = MIN(*limit, mapping->start);
	return end;
}

/* The main arena's: what sbrk(2) gave it. Bytes of it. */
static uint64_t add_main(const struct memory_view *view, const struct maps *maps,
			 struct malloc_heaps *found)
{
	bool contiguous = g_array_index(found->arenas, struct malloc_arena, 0).contiguous;
	struct malloc_heap heap = { .start = found->numbers.sbrk_base, .main = true };
	size_t i;

	for (i = 0; i < maps->count && !heap.start; i++)
		if (!strcmp(maps->entries[i].path, "[heap]"))
			heap.start = maps->entries[i].start;
	if (!heap.start)
		return 0;
	heap.first = (heap.start + 15) & ~15ULL;
	heap.mapped = writable_end(maps, heap.start);
	heap.limit = MIN(heap.mapped, UINT64_MAX - HEAP_BYTES) + HEAP_BYTES;
	if (!contiguous)
		heap.mapped = break_of(maps, heap.start, &heap.limit);
	heap.end = heap.mapped;
	if (heap.end > heap.start) {
		malloc_heap_refresh(view, found, &heap, heap.limit);
		malloc_heaps_take(found, &heap);
	} else if (contiguous) {
		found->lost_heaps++;
	}
	return heap.end - heap.start;
}

/* The heaps of a thread's arena, from the one with its top back to the first, which holds it. */
static void add_others(const struct memory_view *view, uint64_t state_size, uint32_t number,
		       GHashTable *seen, struct malloc_heaps *found)
{
	struct malloc_arena *arena = &g_array_index(found->arenas, struct malloc_arena, number);
	uint64_t home = arena->address & ~(HEAP_BYTES - 1), info = arena->address - home;
	uint64_t at = arena->top & ~(HEAP_BYTES - 1), words[3];
	struct malloc_heap heap;

	while (at && (info == 32 || info == 48) && found->heaps->len < HEAPS_MAX &&
	       !g_hash_table_contains(seen, &at)) {
		if (!view->read(view->context, at, words, sizeof(words)) ||
		    words[0] != arena->address || words[2] > HEAP_BYTES || words[2] % VIEW_PAGE)
			break;
		g_hash_table_add(seen, g_memdup2(&at, sizeof(at)));
		heap = (struct malloc_heap){ .start = at, .first = at + info, .arena = number };
		heap.limit = at + HEAP_BYTES;
		heap.end = at + words[2];
		if (at == home)
			heap.first = (arena->address + state_size + 15) & ~15ULL;
		malloc_heap_refresh(view, found, &heap, heap.limit);
		malloc_heaps_take(found, &heap);
		if (at == home)
			return;
		at = words[1];
	}
	found->lost_heaps++;
}

static gint by_start(gconstpointer a, gconstpointer b)
{
	const struct malloc_heap *left = a, *right = b;

	return left->start < right->start ? -1 : left->start > right->start;
}

/* Overlapping heaps would count bytes twice. */
static void sort_heaps(struct malloc_heaps *found)
{
	guint i;

	g_array_sort(found->heaps, by_start);
	for (i = 1; i < found->heaps->len;) {
		if (g_array_index(found->heaps, struct malloc_heap, i).start >=
		    g_array_index(found->heaps, struct malloc_heap, i - 1).end) {
			i++;
			continue;
		}
		g_array_remove_index(found->heaps, i);
		found->lost_heaps++;
	}
}

static void read_arenas(const struct memory_view *view, const struct maps *maps,
			const struct place *place, struct malloc_heaps *found)
{
	uint64_t start = place->bins - place->head, at = start, next;
	uint64_t state_size = place->head + (BIN_WORDS + TAIL_WORDS) * 8;
	GHashTable *seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	struct malloc_arena arena;
	const struct malloc_arena *main;
	uint64_t by_break = 0;
	uint32_t i;

	do {
		if (!read_arena(view, at, place->head, &arena, &next)) {
			found->lost_heaps++;
			break;
		}
		g_array_append_val(found->arenas, arena);
		at = next;
	} while (at != start && found->arenas->len < ARENAS_MAX);
	if (found->arenas->len)
		by_break = add_main(view, maps, found);
	for (i = 1; i < found->arenas->len; i++)
		add_others(view, state_size, i, seen, found);
	sort_heaps(found);
	main = found->arenas->len ? (const void *)found->arenas->data : NULL;
	if (main && !main->contiguous && main->system_bytes > by_break) {
		found->lost_heaps +=
			mapped_heaps_add(view, maps, main->system_bytes - by_break, found) > 0;
		sort_heaps(found);
	}
	g_hash_table_destroy(seen);
}

/* NULL: main_arena is found; else why it is not known. */
static const char *find_main(const struct memory_view *view, const struct maps *maps,
			     const struct mapping *const *data, size_t data_count, bool swapped,
			     struct place *places, const struct place **only)
{
	unsigned int steps = 0;
	size_t count = 0, i;

	*only = NULL;
	for (i = 0; i < data_count; i++)
		count = look_through(view, maps, data[i], swapped, places, count);
	for (i = 0; i < count; i++) {
		if (!has_head(view, &places[i], &steps))
			continue;
		if (*only)
			return "two places in its data look like glibc's main arena";
		*only = &places[i];
	}
	return *only ? NULL :
		       "no place in its data looks like glibc's main arena; a program that never "
		       "called malloc has none";
}

const char *malloc_heaps_find(const struct memory_view *view, const struct maps *maps,
			      const struct mapping *const *data, size_t data_count, uint64_t par,
			      unsigned int version, struct malloc_heaps *found)
{
	g_autofree struct place *places = g_new0(struct place, CANDIDATES);
	const char *unknown = "";
	const struct place *only;
	unsigned int i;

	*found = (struct malloc_heaps){ .version = version };
	found->arenas = g_array_new(FALSE, TRUE, sizeof(struct malloc_arena));
	found->heaps = g_array_new(FALSE, TRUE, sizeof(struct malloc_heap));
	malloc_numbers_read(view, par, version, &found->numbers);
	/* A bin that is changing just then looks like none: again; at last what is swapped out. */
	for (i = 0; i < LOOKS_MAX && unknown; i++)
		unknown =
			find_main(view, maps, data, data_count, i == LOOKS_MAX - 1, places, &only);
	if (unknown)
		return unknown;
	read_arenas(view, maps, only, found);
	found->mangled = !version || version >= 232;
	return NULL;
}

ssize_t malloc_heaps_at(const struct malloc_heaps *found, uint64_t address)
{
	const struct malloc_heap *heaps = (const void *)found->heaps->data;
	size_t low = 0, high = found->heaps->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (address < heaps[middle].start)
			high = middle;
		else if (address >= heaps[middle].end)
			low = middle + 1;
		else
			return (ssize_t)middle;
	}
	return -1;
}

void malloc_heaps_free(struct malloc_heaps *found)
{
	if (found->arenas)
		g_array_unref(found->arenas);
	if (found->heaps)
		g_array_unref(found->heaps);
	found->arenas = found->heaps = NULL;
}
