/* SPDX-License-Identifier: GPL-2.0 */
/* hash.h: constants of hash functions, and hash tables whose keys are 16 bytes without padding. */
#ifndef MEMTOLL_HASH_H
#define MEMTOLL_HASH_H

#include <glib.h>
#include <stdint.h>
#include <string.h>

/* 2^64 over the golden ratio: multiples are spread evenly (Knuth, TAOCP volume 3, 6.4). */
#define HASH_GOLDEN 0x9e3779b97f4a7c15ULL
/* The first factor of MurmurHash3's fmix64 (Appleby, 2011): every bit reaches the upper ones. */
#define HASH_FACTOR 0xff51afd7ed558ccdULL

static inline guint key16_hash(gconstpointer key)
{
	const uint64_t *words = key;
	uint64_t hash = (words[0] ^ HASH_GOLDEN) * HASH_FACTOR;

	hash = (hash ^ (hash >> 32) ^ words[1]) * HASH_FACTOR;
	return hash ^ (hash >> 32);
}

static inline gboolean key16_equal(gconstpointer a, gconstpointer b)
{
	return !memcmp(a, b, 16);
}

#endif /* MEMTOLL_HASH_H */
