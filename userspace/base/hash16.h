/* SPDX-License-Identifier: GPL-2.0 */
/* hash16.h: tables whose keys are 16 bytes without gaps, as those of the kernel side's sums are. */
#ifndef MEMTOLL_HASH16_H
#define MEMTOLL_HASH16_H

#include <glib.h>
#include <stdint.h>
#include <string.h>

static inline guint key16_hash(gconstpointer key)
{
	const uint64_t *words = key;
	uint64_t hash = (words[0] ^ 0x9e3779b97f4a7c15ULL) * 0xff51afd7ed558ccdULL;

	hash = (hash ^ (hash >> 32) ^ words[1]) * 0xff51afd7ed558ccdULL;
	return hash ^ (hash >> 32);
}

static inline gboolean key16_equal(gconstpointer a, gconstpointer b)
{
	return !memcmp(a, b, 16);
}

#endif /* MEMTOLL_HASH16_H */
