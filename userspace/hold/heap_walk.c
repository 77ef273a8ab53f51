// SPDX-License-Identifier: GPL-2.0
#include "hold/heap_walk.h"

#include <stdlib.h>
#include <string.h>

#include "hold/block_reader.h"
#include "hold/cached_chunks.h"
#include "hold/chunk_header.h"

#define AGAIN_MAX 2    /* reads of what does not fit */
#define AGREE_LEAST 32 /* chunks in a row, to find where one begins */
#define WALKS_MAX 3
#define DAMAGES_MAX 4096      /* of a heap; the rest is not read */
#define ALL_DAMAGES_MAX 65536 /* of all heaps, walks of them again included */
#define PAUSES_MAX 256	      /* of all heaps; none is called corrupt then */
#define SEARCH_MAX (8U << 20) /* headers that are looked at to find beginnings; of all heaps */
#define SEARCH_BLOCK 256      /* what a block costs, in headers */

const char *chunk_kind_name(enum chunk_kind kind)
{
	static const char *const names[CHUNK_KINDS] = {
		[CHUNK_LIVE] = "live",	 [CHUNK_CACHED] = "tcache", [CHUNK_FAST] = "fast",
		[CHUNK_SMALL] = "small", [CHUNK_LARGE] = "large",   [CHUNK_UNSORTED] = "unsorted",
		[CHUNK_TOP] = "top",
	};

	return names[kind];
}

/* A header, and the first word behind it. */
struct header {
	uint64_t address;
	uint64_t size;
	bool previous_in_use;
	uint64_t previous_size; /* only where it is not */
	uint64_t word;
	bool has_word;
};

struct walker {
	struct heap_walk *walk;
	struct heap_chunks *out;
	struct block_reader reader;
	bool main;
	GArray *known;	      /* addresses where chunks begin, ascending */
	struct header last;   /* the chunk whose successor comes next; size 0: none */
	uint32_t live_before; /* the size of the chunk before that, if it is live */
	unsigned int again;
	unsigned int fences; /* fenceposts in a row, the last chunk being one */
};

static gint by_address(gconstpointer a, gconstpointer b)
{
	const uint64_t *left = a, *right = b;

	return *left < *right ? -1 : *left > *right;
}

/* Chunks that the arena itself points at. */
static GArray *find_known(const struct malloc_heaps *heaps, const struct malloc_heap *heap)
{
	const struct malloc_arena *arena =
		&g_array_index(heaps->arenas, struct malloc_arena, heap->arena);
	GArray *known = g_array_new(FALSE, FALSE, sizeof(uint64_t));
	size_t i;

	for (i = 0; i < BIN_WORDS; i++)
		if (arena->bins[i] > heap->first && arena->bins[i] < heap->end)
			g_array_append_val(known, arena->bins[i]);
	for (i = 0; i < FAST_BINS; i++)
		if (arena->fast[i] > heap->first && arena->fast[i] < heap->end &&
		    arena->fast[i] % 16 == 0)
			g_array_append_val(known, arena->fast[i]);
	if (heap->top)
		g_array_append_val(known, heap->top);
	g_array_sort(known, by_address);
	return known;
}

/* False: its page is not there. */
static bool read_header(struct walker *walker, uint64_t address, struct header *header)
{
	const void *bytes = block_reader_get(&walker->reader, address, 16);
	uint64_t words[2], flags;

	if (!bytes)
		return false;
	/* Where an arena's own words are damaged a chunk may begin anywhere. */
	memcpy(words, bytes, sizeof(words));
	flags = words[1] & CHUNK_FLAGS;
	*header = (struct header){
		.address = address,
		.size = words[1] & ~CHUNK_FLAGS,
		.previous_in_use = flags & CHUNK_PREVIOUS_IN_USE,
		.previous_size = words[0],
	};
	if (flags & CHUNK_IS_MMAPPED || (walker->main && flags & CHUNK_NON_MAIN) ||
	    header->size % 16)
		header->size = 1; /* fits nothing */
	return true;
}

/* Whether the header is one of a chunk of this heap, after one of last_size bytes (0: not known). */
static bool fits(const struct walker *walker, const struct header *header, uint64_t last_size)
{
	const struct malloc_heap *heap = walker->out->heap;
	uint64_t left = heap->end - header->address;

	if (!header->previous_in_use && last_size && header->previous_size != last_size)
		return false;
	if (header->address == heap->top)
		return header->size == left;
	if (header->size == 0)
		return left == CHUNK_FENCE;
	if (header->size == CHUNK_FENCE)
		return left == 2 * CHUNK_FENCE || (walker->main && !heap->top) ||
		       (walker->main && header->address + CHUNK_FENCE < heap->top);
	return header->size >= SMALL_LEAST && header->size <= left &&
	       (!heap->top || header->address > heap->top ||
		header->size <= heap->top - header->address);
}

static void add_bytes(const struct walker *walker, struct page_bytes *sum, uint64_t start,
		      uint64_t end)
{
	page_bytes_add(sum, &walker->out->pages, start, end);
}

/* False: there are too many. */
static bool keep(const struct walker *walker, const struct header *header, enum chunk_kind kind,
		 bool linked)
{
	struct heap_walk *walk = walker->walk;
	const struct kept_chunk kept = {
		.address = header->address,
		.size = header->size,
		.link = header->word,
		.linked = linked,
		.kind = kind,
		.before = walker->live_before,
	};

	if (walk->kept->len < (kind == CHUNK_LIVE ? walk->kept_most / 2 : walk->kept_most)) {
		g_array_append_val(walk->kept, kept);
		return true;
	}
	walker->out->left_out++;
	walk->left_out++;
	return false;
}

/* Whether a live chunk's first word may be the link of a list: nothing, or a chunk of some heap. */
static bool may_be_link(const struct walker *walker, const struct header *header)
{
	const struct malloc_heaps *heaps = walker->walk->heaps;
	uint64_t link = header->word;

	if (heaps->mangled)
		link ^= (header->address + 16) >> 12;
	return !link || (link % 16 == 0 && malloc_heaps_at(heaps, link) >= 0);
}

static void keep_cache(struct walker *walker, const struct header *header)
{
	struct cache_chunk cache = { .address = header->address, .size = header->size };
	uint64_t size = MIN(header->size - 8, sizeof(cache.words));
	const void *words;

	if (walker->walk->caches->len >= CACHES_MAX)
		return;
	words = block_reader_get(&walker->reader, header->address + 16, size);
	if (!words)
		return;
	memcpy(cache.words, words, size);
	if (cached_chunks_may_be(walker->walk->heaps, &cache))
		g_array_append_val(walker->walk->caches, cache);
}

static void take_live(struct walker *walker, const struct header *header)
{
	if (header->has_word && may_be_link(walker, header) &&
	    !keep(walker, header, CHUNK_LIVE, true)) {
		walker->out->unfollowed_count++;
		add_bytes(walker, &walker->out->unfollowed, header->address,
			  header->address + header->size);
	}
	walker->live_before = MIN(header->size, UINT32_MAX);
	walker->out->end_of_live = header->address + header->size;
}

/* A chunk of which is now known whether it is free. */
static void take(struct walker *walker, const struct header *header, enum chunk_kind kind)
{
	struct heap_chunks *out = walker->out;

	if (header->size == CHUNK_FENCE) {
		add_bytes(walker, &out->overhead, header->address, header->address + CHUNK_FENCE);
		walker->live_before = 0;
		return;
	}
	out->counts[kind]++;
	add_bytes(walker, &out->bytes[kind], header->address, header->address + header->size);
	if (kind == CHUNK_LIVE) {
		take_live(walker, header);
		return;
	}
	keep(walker, header, kind, header->has_word);
	walker->live_before = 0;
}

static void take_last(struct walker *walker, bool in_use)
{
	const struct header *last = &walker->last;

	if (last->size)
		take(walker, last,
		     in_use		      ? CHUNK_LIVE :
		     last->size < LARGE_LEAST ? CHUNK_SMALL :
						CHUNK_LARGE);
	walker->last.size = 0;
}

/* What of [start, end) is not known, and why. */
static void pass_over(struct walker *walker, uint64_t start, uint64_t end, bool hidden)
{
	add_bytes(walker, hidden ? &walker->out->hidden : &walker->out->unread, start, end);
	walker->last.size = 0;
	walker->live_before = 0;
	walker->fences = 0;
}

static uint64_t next_known(const struct walker *walker, uint64_t address)
{
	size_t low = 0, high = walker->known->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (g_array_index(walker->known, uint64_t, middle) > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low < walker->known->len ? g_array_index(walker->known, uint64_t, low) :
					  walker->out->heap->end;
}

/*
 * Whether so many chunks in a row begin here; a page that is not there ends it, and so do the
 * fenceposts at the end of a mapping of the main heap.
 */
static bool agrees(struct walker *walker, uint64_t address)
{
	const struct malloc_heap *heap = walker->out->heap;
	uint64_t last = 0, blocks = walker->reader.blocks;
	unsigned int fences = 0, i;

	for (i = 0; i < AGREE_LEAST; i++) {
		struct header header;

		walker->walk->searched += SEARCH_BLOCK * (walker->reader.blocks - blocks);
		blocks = walker->reader.blocks;
		if (address == heap->end || address == heap->top)
			return i > 0;
		walker->walk->searched++;
		if (!read_header(walker, address, &header) || !fits(walker, &header, last) ||
		    (header.size < SMALL_LEAST && (header.size != CHUNK_FENCE || !walker->main)))
			return false;
		last = header.size;
		address += header.size;
		fences = header.size == CHUNK_FENCE ? fences + 1 : 0;
		if (fences == 2)
			return i > 1 && address % VIEW_PAGE == 0;
	}
	return true;
}

/* Damage may be made on purpose: the work is bounded, of all heaps together. */
static bool may_search(const struct walker *walker)
{
	return walker->walk->searched < SEARCH_MAX && !walker->reader.gone;
}

/* After a place where nothing fits: where the next chunk begins. */
static uint64_t find_beginning(struct walker *walker, uint64_t address)
{
	uint64_t known = next_known(walker, address), at;

	for (at = address + 16; at < known && may_search(walker); at += 16) {
		if (at % VIEW_PAGE < 16 && !block_reader_has(&walker->reader, at))
			at = MIN(block_reader_next(&walker->reader, at), known) - 16;
		else if (agrees(walker, at))
			return at;
	}
	return known;
}

/* Memory may have been taken from the top, and given back to it. */
static void refresh(struct walker *walker)
{
	struct heap_chunks *out = walker->out;
	const struct page_range *pages = &out->pages;

	malloc_heap_refresh(walker->walk->view, walker->walk->heaps, out->heap,
			    pages->first + pages->count * VIEW_PAGE);
	g_array_unref(walker->known);
	walker->known = find_known(walker->walk->heaps, out->heap);
}

static void note_damage(const struct walker *walker, uint64_t address)
{
	const struct memory_view *view = walker->walk->view;
	struct damage *damage = &walker->out->damage;

	*damage = (struct damage){ .address = address };
	view->read(view->context, address, damage->words, sizeof(damage->words));
	if (!walker->last.size)
		return;
	damage->before = walker->last.address;
	view->read(view->context, damage->before + 8, &damage->before_word,
		   sizeof(damage->before_word));
}

/*
 * The main heap goes on behind what others took by sbrk(2) meanwhile, which may be anything: there
 * are two fenceposts before it.
 */
static bool is_foreign(const struct walker *walker)
{
	return walker->main && walker->fences >= 2;
}

/* What lies at address fits nothing. From where to go on. */
static uint64_t on_damage(struct walker *walker, uint64_t address)
{
	struct heap_chunks *out = walker->out;
	uint64_t start, next;

	block_reader_forget(&walker->reader);
	refresh(walker);
	if (walker->again++ < AGAIN_MAX) {
		out->read_again++;
		start = walker->last.size ? walker->last.address : address;
		walker->fences -= walker->last.size == CHUNK_FENCE;
		walker->last.size = 0;
		return start;
	}
	walker->again = 0;
	if (is_foreign(walker))
		take_last(walker, true);
	else if (!out->damages++)
		note_damage(walker, address);
	walker->walk->damages++;
	start = walker->last.size ? walker->last.address : address;
	next = out->damages < DAMAGES_MAX && walker->walk->damages < ALL_DAMAGES_MAX ?
		       find_beginning(walker, address) :
		       out->heap->end;
	pass_over(walker, start, next, false);
	return next;
}

/* The page of address is not there: swapped out, or it was given back in that moment. */
static uint64_t on_hidden(struct walker *walker, uint64_t address)
{
	uint64_t start = walker->last.size ? walker->last.address : address;
	uint64_t page = (address | (VIEW_PAGE - 1)) + 1;
	/* What is damaged need not be aligned: never back before where this is. */
	uint64_t next = page < walker->out->heap->end ?
				find_beginning(walker, MAX(page - 16, address)) :
				walker->out->heap->end;

	pass_over(walker, start, next, block_reader_is_swapped(&walker->reader, address));
	return next;
}

static uint64_t step(struct walker *walker, uint64_t address)
{
	struct header header;
	const void *word;

	if (!read_header(walker, address, &header))
		return on_hidden(walker, address);
	if (!fits(walker, &header, walker->last.size))
		return on_damage(walker, address);
	/* A retry that went back to the last chunk succeeds with the one after it. */
	if (walker->last.size)
		walker->again = 0;
	take_last(walker, header.previous_in_use);
	if (header.address == walker->out->heap->top) {
		take(walker, &header, CHUNK_TOP);
		return walker->out->heap->end;
	}
	if (!header.size) {
		add_bytes(walker, &walker->out->overhead, address, address + CHUNK_FENCE);
		return walker->out->heap->end;
	}
	word = block_reader_get(&walker->reader, address + 16, 8);
	header.has_word = word != NULL;
	if (word)
		memcpy(&header.word, word, sizeof(header.word));
	if (header.size == 0x250 || header.size == 0x290 || header.size == 0x300)
		keep_cache(walker, &header);
	walker->fences = header.size == CHUNK_FENCE ? walker->fences + 1 : 0;
	walker->last = header;
	return address + header.size;
}

static void walk_heap(struct walker *walker)
{
	struct heap_chunks *out = walker->out;
	uint64_t address = out->heap->first;

	add_bytes(walker, &out->overhead, out->heap->start, address);
	while (address + 16 <= out->heap->end && !walker->reader.gone)
		address = step(walker, address);
	/* Where the break could grow no more, fenceposts end it. */
	if (walker->last.size == CHUNK_FENCE && walker->fences >= 2)
		take_last(walker, true);
	/* No successor says whether the last one is free. */
	if (walker->last.size)
		pass_over(walker, walker->last.address, out->heap->end, false);
	else if (address < out->heap->end)
		pass_over(walker, address, out->heap->end, false);
}

/* States of a heap's pages. False: too many, or not readable. */
static bool read_states(struct heap_walk *walk, struct heap_chunks *chunks)
{
	const struct malloc_heap *heap = chunks->heap;
	uint64_t first = heap->start & ~(VIEW_PAGE - 1);
	uint64_t count = (heap->end - first + VIEW_PAGE - 1) / VIEW_PAGE;

	if (count > PAGES_MAX - walk->pages)
		return false;
	walk->pages += count;
	chunks->pages = (struct page_range){ first, count, g_malloc0(count) };
	if (walk->view->pages(walk->view->context, first, count, chunks->pages.states))
		return true;
	walk->gone = true;
	return false;
}

static void forget_heap(struct heap_walk *walk, struct heap_chunks *out)
{
	const struct malloc_heap *heap = out->heap;

	while (walk->caches->len &&
	       g_array_index(walk->caches, struct cache_chunk, walk->caches->len - 1).address >=
		       heap->start)
		g_array_set_size(walk->caches, walk->caches->len - 1);
	g_array_set_size(walk->kept, out->kept_first);
	walk->left_out -= out->left_out;
	walk->pages -= out->pages.count;
	g_free(out->pages.states);
	*out = (struct heap_chunks){ .heap = out->heap,
				     .kept_first = out->kept_first,
				     .kept_end = out->kept_first };
}

static void walk_once(struct heap_walk *walk, struct heap_chunks *out)
{
	struct walker walker = { .walk = walk, .out = out, .main = out->heap->main };

	malloc_heap_refresh(walk->view, walk->heaps, out->heap, out->heap->limit);
	if (!read_states(walk, out)) {
		out->unread.bytes = out->heap->end - out->heap->start;
		return;
	}
	walker.known = find_known(walk->heaps, out->heap);
	block_reader_open(&walker.reader, walk->view, &out->pages, walk->read_swapped);
	walk_heap(&walker);
	walk->gone |= walker.reader.gone;
	block_reader_close(&walker.reader);
	g_array_unref(walker.known);
	out->kept_end = walk->kept->len;
}

/*
 * What fits no chunk may have been changing, or the walk was led there by what is left of a chunk
 * that has been joined to another: again from the start. What is there every time, also after a
 * pause, is corrupt; not where a search for the arena's mappings missed some of them, since then the
 * start itself may be what is left of a chunk.
 */
static void run_heap(struct heap_walk *walk, guint number)
{
	struct heap_chunks *out = &g_array_index(walk->chunks, struct heap_chunks, number);
	struct damage last;
	unsigned int same = 0, i;

	*out = (struct heap_chunks){
		.heap = &g_array_index(walk->heaps->heaps, struct malloc_heap, number),
		.kept_first = walk->kept->len,
		.kept_end = walk->kept->len,
	};
	walk_once(walk, out);
	for (i = 1; i < WALKS_MAX && out->damages && !walk->gone; i++) {
		last = out->damage;
		if (same == i - 1 && walk->view->pause && walk->pauses < PAUSES_MAX) {
			walk->pauses++;
			walk->view->pause(walk->view->context);
		}
		forget_heap(walk, out);
		walk_once(walk, out);
		same += out->damages && !memcmp(&out->damage, &last, sizeof(last));
	}
	out->corrupt = same == WALKS_MAX - 1 && walk->pauses < PAUSES_MAX &&
		       !(out->heap->searched && walk->heaps->lost_heaps);
}

void heap_walk_init(struct heap_walk *walk, const struct memory_view *view,
		    const struct malloc_heaps *heaps, bool read_swapped)
{
	*walk = (struct heap_walk){
		.view = view, .heaps = heaps, .read_swapped = read_swapped, .kept_most = CHUNKS_KEPT
	};
	walk->kept = g_array_new(FALSE, FALSE, sizeof(struct kept_chunk));
	walk->caches = g_array_new(FALSE, FALSE, sizeof(struct cache_chunk));
	walk->chunks = g_array_new(FALSE, TRUE, sizeof(struct heap_chunks));
	g_array_set_size(walk->chunks, heaps->heaps->len);
}

void heap_walk_run(struct heap_walk *walk)
{
	guint i;

	for (i = 0; i < walk->chunks->len && !walk->gone; i++)
		run_heap(walk, i);
}

void heap_walk_free(struct heap_walk *walk)
{
	guint i;

	for (i = 0; walk->chunks && i < walk->chunks->len; i++)
		g_free(g_array_index(walk->chunks, struct heap_chunks, i).pages.states);
	g_clear_pointer(&walk->kept, g_array_unref);
	g_clear_pointer(&walk->caches, g_array_unref);
	g_clear_pointer(&walk->chunks, g_array_unref);
}

struct kept_chunk *heap_walk_find(const struct heap_walk *walk, uint64_t address)
{
	size_t low = 0, high = walk->kept->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct kept_chunk *kept = &g_array_index(walk->kept, struct kept_chunk, middle);

		if (kept->address == address)
			return kept;
		if (kept->address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}
