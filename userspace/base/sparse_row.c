// SPDX-License-Identifier: GPL-2.0
#include "base/sparse_row.h"

#include <glib.h>

struct packed {
	uint64_t present[PACKED_WORDS / 64];	/* bit n: word n is not 0 */
	uint64_t words[];			/* those, in order */
};

static size_t words_present(const struct packed *packed)
{
	size_t words = 0, i;

	for (i = 0; i < G_N_ELEMENTS(packed->present); i++)
		words += __builtin_popcountll(packed->present[i]);
	return words;
}

void packed_read(const struct packed *packed, uint64_t *words, size_t count)
{
	size_t next = 0, i;

	for (i = 0; i < count; i++)
		words[i] = packed && packed->present[i / 64] >> i % 64 & 1 ?
				   packed->words[next++] :
				   0;
}

struct packed *packed_write(struct packed *packed, const uint64_t *words, size_t count)
{
	size_t room, next = 0, i;
	struct packed now = {};

	g_assert(count <= PACKED_WORDS);
	for (i = 0; i < count; i++)
		if (words[i])
			now.present[i / 64] |= 1ULL << i % 64;
	room = words_present(&now);
	if (!packed || words_present(packed) != room)
		packed = g_realloc(packed, sizeof(now) + room * sizeof(*words));
	*packed = now;
	for (i = 0; i < count; i++)
		if (words[i])
			packed->words[next++] = words[i];
	return packed;
}
