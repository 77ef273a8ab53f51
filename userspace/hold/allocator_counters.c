// SPDX-License-Identifier: GPL-2.0
#include "hold/allocator_counters.h"

#include <glib.h>
#include <string.h>

#define DATA_MAX (64U << 20)   /* of one mapping of its data */
#define ARENA_MAX (160U << 10) /* of an arena of jemalloc's: where its counters are at the latest */
#define CANDIDATES_MAX 2048U   /* places that may be arenas */
#define ARENAS_MAX 4096U
#define FUNCTIONS 6U	  /* of struct pai_s, at least */
#define FIRST_LEAST 4096U /* from there to the first counter of free pages */
#define FIRST_MOST 40960U
#define APART_LEAST 8192U /* from one of struct ecache_s to the next */
#define APART_MOST 65536U
#define STEPS_MAX (64U << 20) /* comparisons, where the process has made up its memory */
#define COMMITTED_LEAST (1U << 20)

/* Bytes of a range; what is not in memory is not read, and zeros. NULL: too many. */
static uint64_t *read_range(const struct memory_view *view, uint64_t start, uint64_t size)
{
	const uint64_t first = start & ~(VIEW_PAGE - 1);
	const size_t pages = (size_t)((start + size - first + VIEW_PAGE - 1) / VIEW_PAGE);
	g_autofree uint8_t *states = NULL;
	char *bytes;
	size_t i;

	if (!size || size > DATA_MAX)
		return NULL;
	states = g_malloc0(pages);
	bytes = g_malloc0(size);
	if (!view->pages(view->context, first, pages, states))
		return (uint64_t *)(void *)bytes;
	for (i = 0; i < pages; i++) {
		const uint64_t from = MAX(first + i * VIEW_PAGE, start);
		const uint64_t end = MIN(first + (i + 1) * VIEW_PAGE, start + size);

		if (states[i] == PAGE_RESIDENT)
			view->read(view->context, from, bytes + (from - start),
				   (size_t)(end - from));
	}
	return (uint64_t *)(void *)bytes;
}

/* Of one range of its data. */
typedef void search_fn(const struct counters_place *place, const uint64_t *words, size_t count,
		       void *context);

static void search_data(const struct counters_place *place, search_fn *search, void *context)
{
	size_t i;

	for (i = 0; i < place->data_count; i++) {
		const uint64_t size = place->data[i]->end - place->data[i]->start;
		g_autofree uint64_t *words = read_range(place->view, place->data[i]->start, size);

		if (words)
			search(place, words, (size_t)size / sizeof(*words), context);
	}
}

/*
 * gperftools, PageHeap::Stats (src/page_heap.h): system, free, unmapped and committed bytes, a
 * count of scavenges, then counts and bytes committed, decommitted and reserved so far.
 */
static void search_tcmalloc(const struct counters_place *place, const uint64_t *words, size_t count,
			    void *context)
{
	struct allocator_counters *counters = context;
	size_t i;

	(void)place;
	for (i = 0; i + 11 <= count && !counters->known; i++) {
		const uint64_t *w = words + i;

		if (!w[0] || w[0] % VIEW_PAGE || w[0] != w[2] + w[3] || w[3] != w[6] - w[8] ||
		    w[0] != w[10] || w[1] > w[3] || !w[5] || !w[9] || w[5] > w[6] || w[9] > w[10])
			continue;
		counters->known = true;
		counters->active = w[3] - w[1];
		counters->dirty = w[1];
		counters->retained = w[2];
	}
}

/* mimalloc, mi_stat_count_t (include/mimalloc-types.h): allocated, freed, peak, current. */
static bool is_count(const uint64_t *words)
{
	return words[0] <= INT64_MAX && words[1] <= words[0] && words[0] - words[1] == words[3] &&
	       words[2] >= words[3] && words[2] <= words[0] && words[3] % VIEW_PAGE == 0;
}

/* mi_stats_t: segments, pages, reserved, committed; the last two are of bytes. */
static void search_mimalloc(const struct counters_place *place, const uint64_t *words, size_t count,
			    void *context)
{
	struct allocator_counters *counters = context;
	size_t i;

	(void)place;
	for (i = 0; i + 8 <= count && !counters->known; i++) {
		const uint64_t *w = words + i;

		if (w[7] < COMMITTED_LEAST || !is_count(w) || !is_count(w + 4) || w[3] < w[7])
			continue;
		counters->known = true;
		counters->committed = w[7];
		counters->retained = w[3] - w[7];
	}
}

struct jemalloc {
	struct allocator_counters *counters;
	GHashTable *seen;   /* words that have been looked at */
	GHashTable *arenas; /* addresses of what was found */
	uint64_t steps;
};

/* Where counters of free pages are, in bytes from the start: of the first cache's first set. */
struct caches {
	size_t first;
	size_t apart;  /* from one cache to the next */
	size_t second; /* to the second set */
};

static bool is_code(const struct counters_place *place, uint64_t address)
{
	const struct mapping *mapping = maps_find(place->maps, address);

	return mapping && mapping->exec && mapping->inode == place->module->inode &&
	       mapping->dev_major == place->module->dev_major &&
	       mapping->dev_minor == place->module->dev_minor;
}

static uint32_t half(const uint64_t *words, size_t offset)
{
	uint32_t value;

	memcpy(&value, (const char *)words + offset, sizeof(value));
	return value;
}

/* States 1, 2 and 3 (dirty, muzzy, retained), so far apart. */
static bool are_states(const uint64_t *words, size_t at, size_t apart)
{
	return half(words, at) == 1 && half(words, at + apart) == 2 &&
	       half(words, at + 2 * apart) == 3;
}

/*
 * Three of struct ecache_s (include/jemalloc/internal/ecache.h), each with two of struct eset_s,
 * whose last members are its pages and its state. size: of words, in bytes.
 */
static bool find_sets(struct jemalloc *jemalloc, const uint64_t *words, size_t size,
		      struct caches *caches)
{
	const size_t end = size - MIN(size, 2 * caches->apart + 4);
	size_t other;

	for (other = 64; other < caches->apart && caches->first + other <= end; other += 8) {
		jemalloc->steps++;
		if (!are_states(words, caches->first + other, caches->apart))
			continue;
		caches->second = other;
		return true;
	}
	return false;
}

static bool find_caches(struct jemalloc *jemalloc, const uint64_t *words, size_t size, size_t from,
			struct caches *caches)
{
	size_t at, step;

	for (at = from + FIRST_LEAST; at < from + FIRST_MOST && at + 4 <= size; at += 8) {
		if (half(words, at) != 1)
			continue;
		for (step = APART_LEAST; step < APART_MOST && at + 2 * step + 4 <= size;
		     step += 8) {
			*caches = (struct caches){ .first = at, .apart = step };
			if (jemalloc->steps++ > STEPS_MAX)
				return false;
			if (are_states(words, at, step) && find_sets(jemalloc, words, size, caches))
				return true;
		}
	}
	return false;
}

/* Pages of one ecache: those of both of its sets. */
static uint64_t pages_of(const uint64_t *words, const struct caches *caches, size_t number)
{
	const size_t at = caches->first + number * caches->apart;

	return (words[at / 8 - 1] + words[(at + caches->second) / 8 - 1]) * VIEW_PAGE;
}

/*
 * struct pa_shard_s (pa.h, 5.3): a pointer, the number of active pages, two booleans, then struct
 * pac_s: functions (struct pai_s), and the caches of free pages.
 */
static void take_arena(const struct counters_place *place, struct jemalloc *jemalloc,
		       uint64_t address, uint64_t size)
{
	g_autofree uint64_t *words = read_range(place->view, address, size);
	struct allocator_counters *counters = jemalloc->counters;
	struct caches caches;
	size_t i, k;

	for (i = 3; words && i + FUNCTIONS <= size / 8; i++) {
		uint64_t at = address + i * 8;

		for (k = 0; k < FUNCTIONS && is_code(place, words[i + k]); k++)
			;
		if (k < FUNCTIONS)
			continue;
		if (words[i - 1] > 0x101 || is_code(place, words[i - 1]) ||
		    !find_caches(jemalloc, words, size & ~7ULL, i * 8, &caches))
			return;
		if (g_hash_table_size(jemalloc->arenas) >= ARENAS_MAX ||
		    !g_hash_table_add(jemalloc->arenas, g_memdup2(&at, sizeof(at))))
			return;
		counters->known = true;
		counters->active += words[i - 2] * VIEW_PAGE;
		counters->dirty += pages_of(words, &caches, 0);
		counters->muzzy += pages_of(words, &caches, 1);
		counters->retained += pages_of(words, &caches, 2);
		return;
	}
}

/* Words that point at memory of its own, as those of the array of arenas do. */
static void search_jemalloc(const struct counters_place *place, const uint64_t *words, size_t count,
			    void *context)
{
	struct jemalloc *jemalloc = context;
	size_t i;

	for (i = 0; i < count && g_hash_table_size(jemalloc->seen) < CANDIDATES_MAX; i++) {
		const struct mapping *mapping;

		if (!words[i] || words[i] % 64 || g_hash_table_contains(jemalloc->seen, &words[i]))
			continue;
		mapping = maps_find(place->maps, words[i]);
		if (!mapping || !mapping->write || mapping->inode || mapping->shared)
			continue;
		g_hash_table_add(jemalloc->seen, g_memdup2(&words[i], sizeof(words[i])));
		take_arena(place, jemalloc, words[i], MIN(mapping->end - words[i], ARENA_MAX));
	}
}

static void read_jemalloc(const struct counters_place *place, struct allocator_counters *counters)
{
	struct jemalloc jemalloc = { .counters = counters };

	jemalloc.seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	jemalloc.arenas = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	search_data(place, search_jemalloc, &jemalloc);
	g_hash_table_destroy(jemalloc.seen);
	g_hash_table_destroy(jemalloc.arenas);
}

void allocator_counters_read(const struct counters_place *place,
			     struct allocator_counters *counters)
{
	*counters = (struct allocator_counters){ 0 };
	switch (place->module->kind) {
	case ALLOCATOR_JEMALLOC:
		read_jemalloc(place, counters);
		break;
	case ALLOCATOR_TCMALLOC:
		search_data(place, search_tcmalloc, counters);
		break;
	case ALLOCATOR_MIMALLOC:
		search_data(place, search_mimalloc, counters);
		break;
	default:
		break;
	}
}

const char *allocator_counters_unknown(enum allocator_kind kind)
{
	switch (kind) {
	case ALLOCATOR_JEMALLOC:
		return "its counters were not found: those of 5.3 are known";
	case ALLOCATOR_TCMALLOC:
		return "its counters were not found: those of gperftools are known";
	case ALLOCATOR_MIMALLOC:
		return "its counters were not found: those of 1.6 to 2.1 are known, of a megabyte "
		       "and more";
	default:
		return "memtoll reads the inside of glibc's heaps only";
	}
}
