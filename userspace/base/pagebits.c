// SPDX-License-Identifier: GPL-2.0
/* A hash table of bitmaps, each for 2 MiB of addresses, created where a page was touched. */
#include "base/pagebits.h"

#include <glib.h>
#include <stdbool.h>

#define PAGE_SHIFT 12
#define PART_SHIFT 21
#define WORD_PAGES 64
#define PART_PAGES (1ULL << (PART_SHIFT - PAGE_SHIFT))
#define PART_WORDS (PART_PAGES / WORD_PAGES)

struct part {
	uint64_t used[PART_WORDS];
	uint64_t released[PART_WORDS];
};

struct pagebits {
	GHashTable *parts; /* address >> PART_SHIFT -> struct part */
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

/* Pages of a part, as numbers, from `page` to before `last`. */
typedef void part_fn(void *context, struct part *part, uint64_t page, uint64_t last);

static void on_pages_in(struct part *part, uint64_t number, uint64_t page, uint64_t last,
			part_fn *on_part, void *context)
{
	on_part(context, part, MAX(page, number * PART_PAGES),
		MIN(last, (number + 1) * PART_PAGES));
}

/*
 * Visit the existing parts of the range. Where that is longer than the table (programs reserve
 * terabytes and touch few pages), all parts of the table are visited instead.
 */
static void each_part(struct pagebits *bits, uint64_t start, uint64_t end, part_fn *on_part,
		      void *context)
{
	uint64_t page = start >> PAGE_SHIFT, last = end >> PAGE_SHIFT, number = page / PART_PAGES;
	GHashTableIter iter;
	gpointer key, part;

	if ((last - page) / PART_PAGES <= g_hash_table_size(bits->parts)) {
		for (; number * PART_PAGES < last; number++) {
			part = g_hash_table_lookup(bits->parts, GSIZE_TO_POINTER(number));
			if (part)
				on_pages_in(part, number, page, last, on_part, context);
		}
		return;
	}
	g_hash_table_iter_init(&iter, bits->parts);
	while (g_hash_table_iter_next(&iter, &key, &part)) {
		number = GPOINTER_TO_SIZE(key);
		if (number * PART_PAGES < last && (number + 1) * PART_PAGES > page)
			on_pages_in(part, number, page, last, on_part, context);
	}
}

/* Visit all parts of the range; missing ones are created, as long as the budget lasts. */
static void each_part_made(struct pagebits *bits, uint64_t start, uint64_t end, part_fn *on_part,
			   void *context)
{
	uint64_t page = start >> PAGE_SHIFT, last = end >> PAGE_SHIFT, number = page / PART_PAGES;

	for (; number * PART_PAGES < last; number++) {
		gpointer key = GSIZE_TO_POINTER(number);
		struct part *part = g_hash_table_lookup(bits->parts, key);

		if (!part && bits->budget->left) {
			bits->budget->left--;
			part = g_new0(struct part, 1);
			g_hash_table_insert(bits->parts, key, part);
		}
		if (part)
			on_pages_in(part, number, page, last, on_part, context);
		else
			bits->budget->refused_pages += MIN(last, (number + 1) * PART_PAGES) -
						       MAX(page, number * PART_PAGES);
	}
}

/* The mask has the pages of the range in this word. Results of all words are added up. */
typedef uint64_t word_fn(uint64_t *used, uint64_t *released, uint64_t mask);

struct word_pass {
	word_fn *on_word;
	uint64_t sum;
};

static uint64_t mask_of(uint64_t first, uint64_t count)
{
	return (count < WORD_PAGES ? (1ULL << count) - 1 : ~0ULL) << first;
}

static void on_words(void *context, struct part *part, uint64_t page, uint64_t last)
{
	struct word_pass *pass = context;

	while (page < last) {
		uint64_t first = page % WORD_PAGES;
		uint64_t count = MIN(last - page, WORD_PAGES - first);
		unsigned int word = page / WORD_PAGES % PART_WORDS;

		pass->sum += pass->on_word(&part->used[word], &part->released[word],
					   mask_of(first, count));
		page += count;
	}
}

static uint64_t each_word(struct pagebits *bits, uint64_t start, uint64_t end, word_fn *on_word)
{
	struct word_pass pass = { .on_word = on_word };

	each_part(bits, start, end, on_words, &pass);
	return pass.sum;
}

static uint64_t each_word_made(struct pagebits *bits, uint64_t start, uint64_t end,
			       word_fn *on_word)
{
	struct word_pass pass = { .on_word = on_word };

	each_part_made(bits, start, end, on_words, &pass);
	return pass.sum;
}

static uint64_t touch_word(uint64_t *used, uint64_t *released, uint64_t mask)
{
	uint64_t back = *released & mask;

	*released &= ~mask;
	*used |= mask;
	return __builtin_popcountll(back);
}

uint64_t pagebits_touch(struct pagebits *bits, uint64_t start, uint64_t end)
{
	return each_word_made(bits, start, end, touch_word);
}

static uint64_t release_word(uint64_t *used, uint64_t *released, uint64_t mask)
{
	uint64_t gone = *used & mask;

	*used &= ~mask;
	*released |= gone;
	return __builtin_popcountll(gone);
}

static uint64_t touched_before_word(uint64_t *used, uint64_t *released, uint64_t mask)
{
	uint64_t again = (*released | *used) & mask;

	*released |= mask & ~*used;
	return __builtin_popcountll(again);
}

uint64_t pagebits_touched_before(struct pagebits *bits, uint64_t start, uint64_t end)
{
	return each_word_made(bits, start, end, touched_before_word);
}

static uint64_t released_word(uint64_t *used, uint64_t *released, uint64_t mask)
{
	(void)used;
	return __builtin_popcountll(*released & mask);
}

static uint64_t used_word(uint64_t *used, uint64_t *released, uint64_t mask)
{
	(void)released;
	return __builtin_popcountll(*used & mask);
}

static uint64_t forget_word(uint64_t *used, uint64_t *released, uint64_t mask)
{
	*used &= ~mask;
	*released &= ~mask;
	return 0;
}

uint64_t pagebits_release(struct pagebits *bits, uint64_t start, uint64_t end)
{
	return each_word(bits, start, end, release_word);
}

uint64_t pagebits_released(struct pagebits *bits, uint64_t start, uint64_t end)
{
	return each_word(bits, start, end, released_word);
}

uint64_t pagebits_used(struct pagebits *bits, uint64_t start, uint64_t end)
{
	return each_word(bits, start, end, used_word);
}

struct range_pass {
	pagebits_fn *on_range;
	void *context;
};

static void on_released(void *context, struct part *part, uint64_t page, uint64_t last)
{
	const struct range_pass *pass = context;
	uint64_t from = 0;
	bool inside = false;

	for (; page < last; page++) {
		bool released =
			part->released[page / WORD_PAGES % PART_WORDS] >> page % WORD_PAGES & 1;

		if (released && !inside)
			from = page;
		else if (!released && inside)
			pass->on_range(pass->context, from << PAGE_SHIFT, page << PAGE_SHIFT);
		inside = released;
	}
	if (inside)
		pass->on_range(pass->context, from << PAGE_SHIFT, last << PAGE_SHIFT);
}

void pagebits_each_released(struct pagebits *bits, uint64_t start, uint64_t end,
			    pagebits_fn *on_range, void *context)
{
	struct range_pass pass = { .on_range = on_range, .context = context };

	each_part(bits, start, end, on_released, &pass);
}

static gboolean part_is_empty(gpointer key, gpointer value, gpointer unused)
{
	const struct part *part = value;
	unsigned int i;

	(void)key;
	(void)unused;
	for (i = 0; i < PART_WORDS; i++)
		if (part->used[i] | part->released[i])
			return FALSE;
	return TRUE;
}

void pagebits_forget(struct pagebits *bits, uint64_t start, uint64_t end)
{
	each_word(bits, start, end, forget_word);
	/* Empty parts are freed only when memory is short: most fill again at once. */
	if (!bits->budget->left)
		bits->budget->left += g_hash_table_foreach_remove(bits->parts, part_is_empty, NULL);
}
