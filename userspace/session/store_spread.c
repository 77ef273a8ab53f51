// SPDX-License-Identifier: GPL-2.0
/*
 * store_spread.c: samples come at moments of their own, each at one of P pages, as likely at one as
 * at another. Of n samples P (1 - exp(-n / P)) pages are met on average: that tells P. A program
 * that goes over a block again and again meets fewer pages twice, and then P comes out too high; but
 * no more memory is stored to than lies between the lowest and the highest address.
 */
#include "session/store_spread.h"

#include <glib.h>
#include <math.h>
#include <stdbool.h>

#include "bpf/wire/pages.h"

/* So many samples, none of which met a page again, and there are at least as many pages squared. */
#define SAMPLES_ENOUGH 48
/* Where they do meet. */
#define SAMPLES_LEAST 4
/* Where they do not, but lie so close to each other that little else than P can be between them. */
#define SAMPLES_CLOSE 8
#define PLACES_MAX 4096

struct place {
	GHashTable *pages; /* numbers of pages, as keys */
	uint64_t samples;
	uint64_t lowest, highest;
	uint64_t before; /* what earlier samples have said, in bytes */
};

struct store_spread {
	GHashTable *places; /* number -> struct place */
};

static void place_free(gpointer data)
{
	struct place *place = data;

	g_hash_table_destroy(place->pages);
	g_free(place);
}

struct store_spread *store_spread_new(void)
{
	struct store_spread *spread = g_new0(struct store_spread, 1);

	spread->places = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, place_free);
	return spread;
}

void store_spread_free(struct store_spread *spread)
{
	if (!spread)
		return;
	g_hash_table_destroy(spread->places);
	g_free(spread);
}

void store_spread_add(struct store_spread *spread, uint64_t place, uint64_t address)
{
	struct place *known = g_hash_table_lookup(spread->places, &place);

	if (!known) {
		if (g_hash_table_size(spread->places) >= PLACES_MAX)
			g_hash_table_remove_all(spread->places);
		known = g_new0(struct place, 1);
		known->pages = g_hash_table_new(g_direct_hash, g_direct_equal);
		g_hash_table_insert(spread->places, g_memdup2(&place, sizeof(place)), known);
	}
	known->lowest = known->samples ? MIN(known->lowest, address) : address;
	known->highest = known->samples ? MAX(known->highest, address) : address;
	known->samples++;
	g_hash_table_add(known->pages, GSIZE_TO_POINTER(address / MEMTOLL_PAGE_SIZE));
}

/* Of so many pages that samples have met: how many there are. */
static double pages_of(double samples, double met)
{
	double low = met, high = samples * samples, middle;

	if (met >= samples)
		return high;
	while (high - low > 0.01 * low) {
		middle = (low + high) / 2;
		if (middle * (1 - exp(-samples / middle)) < met)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/* Of so many addresses the outermost are 1 / (n + 1) off the ends. */
static double bytes_between(const struct place *place)
{
	double n = (double)place->samples;

	return MAX((double)(place->highest - place->lowest) * (n + 1) / (n - 1), MEMTOLL_PAGE_SIZE);
}

uint64_t store_spread_bytes(const struct store_spread *spread, uint64_t place)
{
	const struct place *known = g_hash_table_lookup(spread->places, &place);
	guint met = known ? g_hash_table_size(known->pages) : 0;
	double samples, between, least;

	if (!met || known->samples < SAMPLES_LEAST)
		return known ? known->before : 0;
	samples = (double)known->samples;
	between = bytes_between(known);
	least = samples * samples * MEMTOLL_PAGE_SIZE;
	if (known->samples < SAMPLES_ENOUGH && 2 * met > known->samples)
		return known->samples >= SAMPLES_CLOSE && between <= least ? (uint64_t)between :
									     known->before;
	return (uint64_t)MIN(pages_of(samples, met) * MEMTOLL_PAGE_SIZE, between);
}

void store_spread_next(struct store_spread *spread)
{
	GHashTableIter iter;
	gpointer id, data;

	g_hash_table_iter_init(&iter, spread->places);
	while (g_hash_table_iter_next(&iter, &id, &data)) {
		struct place *place = data;

		if (place->samples < SAMPLES_ENOUGH)
			continue;
		place->before = store_spread_bytes(spread, *(const uint64_t *)id);
		place->samples = 0;
		g_hash_table_remove_all(place->pages);
	}
}
