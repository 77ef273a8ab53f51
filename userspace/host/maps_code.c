// SPDX-License-Identifier: GPL-2.0
/* maps_code.c: whether a process's code is what and where it was. */
#include "host/maps.h"

/* FNV-1a, of words (draft-eastlake-fnv): nobody has a reason to choose equal ones. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
	return (hash ^ word) * 0x100000001b3ULL;
}

uint64_t maps_code(const struct maps *maps)
{
	uint64_t hash = 0xcbf29ce484222325ULL;
	size_t i;

	for (i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->entries[i];

		if (!mapping->exec)
			continue;
		hash = mix(mix(hash, mapping->start), mapping->end);
		hash = mix(mix(hash, mapping->offset), mapping->inode);
		hash = mix(mix(hash, mapping->dev_major), mapping->dev_minor);
	}
	return hash;
}
