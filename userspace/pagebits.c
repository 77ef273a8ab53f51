// SPDX-License-Identifier: GPL-2.0
/*
 * pagebits.c: parts of 2 MiB of addresses, made where a page was touched. The hash table is GLib's.
 */
#include "pagebits.h"

#include <glib.h>
#include <stdbool.h>

#define PAGE_SHIFT 12
#define PART_SHIFT 21
#define WORD_PAGES 64
#define PART_WORDS ((1 << (PART_SHIFT - PAGE_SHIFT)) / WORD_PAGES)

struct part {
	uint64_t used[PART_WORDS];
	uint64_t given[PART_WORDS];
};

struct pagebits {
	GHashTable *parts;	/* address >> PART_SHIFT -> struct part */
	struct pagebits_budget *budget;
};

struct pagebits *pagebits_new(struct pagebits_budget *budget)
{
	struct pagebits *bits = g_new0(struct pagebits, 1);

	bits->parts = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	bits->budget = budget;
	return bits;
}

void pagebits_free(struct pagebits *bits)
{
	if (!bits)
		return;
	bits->budget->left += g_hash_table_size(bits->parts);
	g_hash_table_destroy(bits->parts);
	g_free(bits);
}

/*
 * Calls for each word of the pages: bits of the mask are pages of the range. What they return adds
 * up.
 */
typedef uint64_t word_fn(uint64_t *used, uint64_t *given, uint64_t mask);

static uint64_t mask_of(uint64_t first, uint64_t count)
{
	return (count < WORD_PAGES ? (1ULL << count) - 1 : ~0ULL) << first;
}

static struct part *part_make(struct pagebits *bits, gpointer key)
{
	struct part *part = NULL;

	if (bits->budget->left) {
		bits->budget->left--;
		part = g_new0(struct part, 1);
		g_hash_table_insert(bits->parts, key, part);
	}
	return part;
}

static uint64_t each_word(struct pagebits *bits, uint64_t start, uint64_t end, bool make,
			  word_fn *on_word)
{
	uint64_t page = start >> PAGE_SHIFT, last = end >> PAGE_SHIFT, sum = 0;

	while (page < last) {
		uint64_t number = page >> (PART_SHIFT - PAGE_SHIFT);
		uint64_t limit = MIN(last, (number + 1) << (PART_SHIFT - PAGE_SHIFT));
		struct part *part = g_hash_table_lookup(bits->parts, GSIZE_TO_POINTER(number));

		if (!part && make) {
			part = part_make(bits, GSIZE_TO_POINTER(number));
			if (!part)
				bits->budget->refused_pages += limit - page;
		}
		while (part && page < limit) {
			uint64_t first = page % WORD_PAGES;
			uint64_t count = MIN(limit - page, WORD_PAGES - first);
			unsigned int word = page / WORD_PAGES % PART_WORDS;

			sum += on_word(&part->used[word], &part->given[word],
				       mask_of(first, count));
			page += count;
		}
		page = limit;
	}
	return sum;
}

static uint64_t touch_word(uint64_t *used, uint64_t *given, uint64_t mask)
{
	uint64_t back = *given & mask;

	*given &= ~mask;
	*used |= mask;
	return __builtin_popcountll(back);
}

uint64_t pagebits_touch(struct pagebits *bits, uint64_t start, uint64_t end)
{
	return each_word(bits, start, end, true, touch_word);
}

static uint64_t give_word(uint64_t *used, uint64_t *given, uint64_t mask)
{
	uint64_t gone = *used & mask;

	*used &= ~mask;
	*given |= gone;
	return __builtin_popcountll(gone);
}

static uint64_t touched_before_word(uint64_t *used, uint64_t *given, uint64_t mask)
{
	uint64_t again = *given & mask;

	*used &= ~mask;
	*given |= mask;
	return __builtin_popcountll(again);
}

uint64_t pagebits_touched_before(struct pagebits *bits, uint64_t start, uint64_t end)
{
	return each_word(bits, start, end, true, touched_before_word);
}

static uint64_t given_word(uint64_t *used, uint64_t *given, uint64_t mask)
{
	(void)used;
	return __builtin_popcountll(*given & mask);
}

static uint64_t forget_word(uint64_t *used, uint64_t *given, uint64_t mask)
{
	*used &= ~mask;
	*given &= ~mask;
	return 0;
}

/*
 * Ranges may be the terabytes that a program reserves, of which few pages were ever touched: then
 * the parts there are are gone over instead.
 */
static uint64_t each_existing(struct pagebits *bits, uint64_t start, uint64_t end,
			      word_fn *on_word)
{
	GHashTableIter iter;
	uint64_t sum = 0;
	gpointer key;

	if ((end - start) >> PART_SHIFT <= g_hash_table_size(bits->parts))
		return each_word(bits, start, end, false, on_word);
	g_hash_table_iter_init(&iter, bits->parts);
	while (g_hash_table_iter_next(&iter, &key, NULL)) {
		uint64_t low = (uint64_t)GPOINTER_TO_SIZE(key) << PART_SHIFT;
		uint64_t high = low + (1ULL << PART_SHIFT);

		if (low < end && high > start)
			sum += each_word(bits, MAX(low, start), MIN(high, end), false, on_word);
	}
	return sum;
}

uint64_t pagebits_give(struct pagebits *bits, uint64_t start, uint64_t end)
{
	return each_existing(bits, start, end, give_word);
}

uint64_t pagebits_given(struct pagebits *bits, uint64_t start, uint64_t end)
{
	return each_existing(bits, start, end, given_word);
}

static void part_each_given(const struct part *part, uint64_t page, uint64_t last,
			    pagebits_fn *on_range, void *context)
{
	uint64_t from = 0;
	bool inside = false;

	for (; page < last; page++) {
		bool given = part->given[page / WORD_PAGES % PART_WORDS] >> page % WORD_PAGES & 1;

		if (given && !inside)
			from = page;
		else if (!given && inside)
			on_range(context, from << PAGE_SHIFT, page << PAGE_SHIFT);
		inside = given;
	}
	if (inside)
		on_range(context, from << PAGE_SHIFT, last << PAGE_SHIFT);
}

void pagebits_each_given(struct pagebits *bits, uint64_t start, uint64_t end, pagebits_fn *on_range,
			 void *context)
{
	uint64_t number = start >> PART_SHIFT, last = (end + (1ULL << PART_SHIFT) - 1) >> PART_SHIFT;
	GHashTableIter iter;
	gpointer key, part;

	if (last - number <= g_hash_table_size(bits->parts)) {
		for (; number < last; number++) {
			part = g_hash_table_lookup(bits->parts, GSIZE_TO_POINTER(number));
			if (part)
				part_each_given(part, MAX(start, number << PART_SHIFT) >> PAGE_SHIFT,
						MIN(end, (number + 1) << PART_SHIFT) >> PAGE_SHIFT,
						on_range, context);
		}
		return;
	}
	g_hash_table_iter_init(&iter, bits->parts);
	while (g_hash_table_iter_next(&iter, &key, &part)) {
		uint64_t low = (uint64_t)GPOINTER_TO_SIZE(key) << PART_SHIFT;

		if (low < end && low + (1ULL << PART_SHIFT) > start)
			part_each_given(part, MAX(start, low) >> PAGE_SHIFT,
					MIN(end, low + (1ULL << PART_SHIFT)) >> PAGE_SHIFT, on_range,
					context);
	}
}

static gboolean part_is_empty(gpointer key, gpointer value, gpointer unused)
{
	const struct part *part = value;
	unsigned int i;

	(void)key;
	(void)unused;
	for (i = 0; i < PART_WORDS; i++)
		if (part->used[i] | part->given[i])
			return FALSE;
	return TRUE;
}

void pagebits_forget(struct pagebits *bits, uint64_t start, uint64_t end)
{
	each_existing(bits, start, end, forget_word);
	/* Empty parts are dropped when they are needed: most fill again at once. */
	if (!bits->budget->left)
		bits->budget->left +=
			g_hash_table_foreach_remove(bits->parts, part_is_empty, NULL);
}
