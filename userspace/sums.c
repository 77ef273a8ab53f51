// SPDX-License-Identifier: GPL-2.0
#include "sums.h"

#include <bpf/bpf.h>
#include <string.h>

#include "../bpf/events.h"
#include "packed.h"

void sums_add_cpus(uint64_t *total, const uint64_t *values, size_t words, size_t pairs, int cpus)
{
	uint32_t *halves = (uint32_t *)(total + words);
	size_t i;
	int cpu;

	memset(total, 0, (words + pairs) * sizeof(*total));
	for (cpu = 0; cpu < cpus; cpu++, values += words + pairs) {
		for (i = 0; i < words; i++)
			total[i] += values[i];
		for (i = 0; i < 2 * pairs; i++)
			halves[i] += ((const uint32_t *)(values + words))[i];
	}
}

/* now -= before, and before becomes what now was. Whether any counter changed. */
static bool take_difference(uint64_t *now, uint64_t *before, size_t words, size_t pairs)
{
	uint32_t *halves = (uint32_t *)(now + words), *old = (uint32_t *)(before + words), half;
	bool changed = false;
	uint64_t word;
	size_t i;

	for (i = 0; i < words; i++) {
		word = now[i];
		now[i] -= before[i];
		before[i] = word;
		changed |= now[i] != 0;
	}
	for (i = 0; i < 2 * pairs; i++) {
		half = halves[i];
		halves[i] -= old[i];
		old[i] = half;
		changed |= halves[i] != 0;
	}
	return changed;
}

void sums_each(struct bpf_map *map, GHashTable *last, size_t words, size_t pairs, sums_fn *each,
	       void *context)
{
	int fd = bpf_map__fd(map);
	int cpus = bpf_map__type(map) == BPF_MAP_TYPE_HASH ? 1 : libbpf_num_possible_cpus();
	g_autofree uint64_t *values = g_new0(uint64_t, (words + pairs) * cpus);
	g_autofree uint64_t *total = g_new0(uint64_t, words + pairs);
	g_autofree uint64_t *before = g_new0(uint64_t, words + pairs);
	uint64_t key[2], previous[2];
	bool first = true;

	while (!bpf_map_get_next_key(fd, first ? NULL : previous, key)) {
		struct packed *packed, *written;
		gpointer kept = NULL;

		first = false;
		memcpy(previous, key, sizeof(key));
		if (bpf_map_lookup_elem(fd, key, values))
			continue;
		sums_add_cpus(total, values, words, pairs, cpus);
		packed = g_hash_table_lookup(last, key);
		packed_read(packed, before, words + pairs);
		if (!take_difference(total, before, words, pairs))
			continue;
		written = packed_write(packed, before, words + pairs);
		if (written != packed) {
			/* The old one is gone: the table must not free it. */
			if (!g_hash_table_steal_extended(last, key, &kept, NULL))
				kept = g_memdup2(key, sizeof(key));
			g_hash_table_insert(last, kept, written);
		}
		each(context, key, total);
	}
}

void sums_prepare_calls(struct bpf_map *calls, uint32_t tgid)
{
	g_autofree char *zero = g_malloc0(sizeof(struct memtoll_call) * libbpf_num_possible_cpus());
	struct memtoll_call_key key = { .tgid = tgid };

	for (key.fn = FN_MALLOC; key.fn < FN_COUNT; key.fn++)
		bpf_map_update_elem(bpf_map__fd(calls), &key, zero, BPF_NOEXIST);
}
