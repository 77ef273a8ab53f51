// SPDX-License-Identifier: GPL-2.0
#include "base/keyed_hash.h"

#include <sys/random.h>

/* Random, odd, drawn once. */
static uint64_t key(void)
{
	static uint64_t drawn;
	static gsize done;

	if (g_once_init_enter(&done)) {
		if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn))
			drawn = (uint64_t)g_random_int() << 32 | g_random_int();
		drawn |= 1;
		g_once_init_leave(&done, 1);
	}
	return drawn;
}

/* The high half of a product depends on all bits of its factors. */
static uint64_t mix(uint64_t value, uint64_t factor)
{
	unsigned __int128 product = (unsigned __int128)value * factor;

	return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

guint keyed_hash_text(gconstpointer text)
{
	const unsigned char *at = text;
	uint64_t hash = 0, factor = key();

	while (*at)
		hash = mix(hash + *at++ + 1, factor);
	return (guint)hash;
}

guint keyed_hash_file(uint64_t inode, uint32_t dev)
{
	return (guint)mix(mix(inode + 1, key()) + dev, key());
}
