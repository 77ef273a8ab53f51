// SPDX-License-Identifier: GPL-2.0
#include "base/sparse_row.h"

#include <glib.h>

struct sparse_row {
	uint64_t present[SPARSE_ROW_WORDS / 64]; /* bit n: word n is not 0 */
	uint64_t words[];			 /* those, in order */
};

static size_t words_present(const struct sparse_row *row)
{
	size_t words = 0, i;

	for (i = 0; i < G_N_ELEMENTS(row->present); i++)
		words += __builtin_popcountll(row->present[i]);
	return words;
}

void sparse_row_read(const struct sparse_row *row, uint64_t *words, size_t count)
{
	size_t next = 0, i;

	for (i = 0; i < count; i++)
		words[i] = row && row->present[i / 64] >> i % 64 & 1 ? row->words[next++] : 0;
}

struct sparse_row *sparse_row_write(struct sparse_row *row, const uint64_t *words, size_t count)
{
	size_t room, next = 0, i;
	struct sparse_row now = {};

	g_assert(count <= SPARSE_ROW_WORDS);
	for (i = 0; i < count; i++)
		if (words[i])
			now.present[i / 64] |= 1ULL << i % 64;
	room = words_present(&now);
	if (!row || words_present(row) != room)
		row = g_realloc(row, sizeof(now) + room * sizeof(*words));
	*row = now;
	for (i = 0; i < count; i++)
		if (words[i])
			row->words[next++] = words[i];
	return row;
}
