// SPDX-License-Identifier: GPL-2.0
#include "hold/malloc_numbers.h"

#include <glib.h>

#define WORDS 20
#define MMAPS_MAX 65536 /* DEFAULT_MMAP_MAX */
#define FIRST_HALF 11	/* of n_mmaps_max, counted in ints */
#define LAST_HALF 18

/*
 * n_mmaps_max is behind the fields for huge pages, of which there are more from version to version.
 * By its value where that is in one place only; where it was set, by the version.
 */
static unsigned int find_maximum(const uint32_t *halves, unsigned int version)
{
	unsigned int found = 0, at = 0, i;

	for (i = FIRST_HALF; i <= LAST_HALF; i++)
		if (halves[i] == MMAPS_MAX) {
			found++;
			at = i;
		}
	if (found == 1)
		return at;
	if (!version)
		return 0;
	return version < 235 ? 11 : version < 243 ? 16 : 18;
}

void malloc_numbers_read(const struct memory_view *view, uint64_t par, unsigned int version,
			 struct malloc_numbers *numbers)
{
	uint64_t words[WORDS];
	const uint32_t *halves = (const uint32_t *)words;
	unsigned int maximum, after;

	*numbers = (struct malloc_numbers){ .mmaps = -1 };
	if (!par || !view->read(view->context, par, words, sizeof(words)))
		return;
	numbers->trim_threshold = words[0];
	numbers->top_pad = words[1];
	numbers->mmap_threshold = words[2];
	numbers->arena_max = words[4];
	maximum = find_maximum(halves, version);
	if (!maximum)
		return;
	/* Two ints on: max_n_mmaps, no_dyn_threshold; then mmapped_mem, on a word. */
	after = (maximum + 4) / 2;
	numbers->mmaps = (int32_t)halves[maximum - 1];
	numbers->mmapped = words[after];
	numbers->sbrk_base = words[after + 2];
	numbers->tcache_count = words[after + 5];
	if (maximum == 16)
		numbers->thp_page = words[5];
	else if (maximum == 18)
		numbers->thp_page = words[6];
	if (numbers->mmaps < 0)
		numbers->mmaps = -1;
}
