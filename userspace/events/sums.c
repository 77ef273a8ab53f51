// SPDX-License-Identifier: GPL-2.0
#include "events/sums.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/sparse_row.h"
#include "bpf/wire/functions.h"
#include "bpf/wire/sums.h"

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

#define KEY_WORDS 2
#define CALL_WORDS (sizeof(struct memtoll_call_sum) / sizeof(uint64_t))
#define CALL_PAIRS (sizeof(struct memtoll_call) / sizeof(uint64_t) - CALL_WORDS)

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

/* What a row has become, less what it was; false: it is the same. before has room for a row. */
static bool take_news(GHashTable *last, const uint64_t *key, uint64_t *row, uint64_t *before,
		      size_t words, size_t pairs)
{
	struct sparse_row *known = g_hash_table_lookup(last, key), *written;
	gpointer kept = NULL;

	sparse_row_read(known, before, words + pairs);
	if (!take_difference(row, before, words, pairs))
		return false;
	written = sparse_row_write(known, before, words + pairs);
	if (written != known) {
		/* The old one is freed: the table must not free it again. */
		if (!g_hash_table_steal_extended(last, key, &kept, NULL))
			kept = g_memdup2(key, KEY_WORDS * sizeof(*key));
		g_hash_table_insert(last, kept, written);
	}
	return true;
}

/* A table that is read. */
struct reading {
	int fd;
	int cpus;
	size_t words;
	size_t pairs;
	GHashTable *last;
	const struct sums_reader *reader;
	uint64_t *total;  /* room for a row */
	uint64_t *before; /* likewise */
};

/* One row; of one that does not change any more, and is of a process that has gone, the end. */
static void take_row(const struct reading *reading, const uint64_t *key, const uint64_t *values)
{
	enum sums_owner owner;
	uint32_t tgid;

	memcpy(&tgid, key, sizeof(tgid));
	owner = reading->reader->owner(reading->reader->context, tgid);
	if (owner == OWNER_COMING)
		return;
	sums_add_cpus(reading->total, values, reading->words, reading->pairs, reading->cpus);
	if (take_news(reading->last, key, reading->total, reading->before, reading->words,
		      reading->pairs)) {
		reading->reader->each(reading->reader->context, key, reading->total);
	} else if (owner == OWNER_GONE) {
		bpf_map_delete_elem(reading->fd, key);
		g_hash_table_remove(reading->last, key);
	}
}

static void take_one_by_one(const struct reading *reading)
{
	g_autofree uint64_t *values =
		g_new0(uint64_t, (reading->words + reading->pairs) * reading->cpus);
	uint64_t key[KEY_WORDS], next[KEY_WORDS];
	bool more;

	/*
	 * Get the next key first: after one that is deleted the kernel starts from the beginning.
	 */
	for (more = !bpf_map_get_next_key(reading->fd, NULL, key); more;
	     memcpy(key, next, sizeof(key))) {
		more = !bpf_map_get_next_key(reading->fd, key, next);
		if (!bpf_map_lookup_elem(reading->fd, key, values))
			take_row(reading, key, values);
	}
}

/* So many rows with one system call. */
#define ROWS_AT_ONCE 256

/* False: not all; a row that was taken has no news, and may be taken again. */
static bool take_many_at_once(const struct reading *reading)
{
	size_t size = (reading->words + reading->pairs) * reading->cpus;
	g_autofree uint64_t *values = g_new(uint64_t, size * ROWS_AT_ONCE);
	g_autofree uint64_t *keys = g_new(uint64_t, (gsize)KEY_WORDS * ROWS_AT_ONCE);
	uint64_t at[KEY_WORDS], next[KEY_WORDS];
	bool first = true;
	uint32_t count, i;
	int err;

	do {
		count = ROWS_AT_ONCE;
		err = bpf_map_lookup_batch(reading->fd, first ? NULL : at, next, keys, values,
					   &count, NULL);
		if (err && err != -ENOENT)
			return false;
		for (i = 0; i < count; i++)
			take_row(reading, keys + KEY_WORDS * i, values + size * i);
		memcpy(at, next, sizeof(at));
		first = false;
	} while (!err);
	return true;
}

void sums_each(struct bpf_map *map, GHashTable *last, size_t words, size_t pairs,
	       const struct sums_reader *reader)
{
	g_autofree uint64_t *total = g_new0(uint64_t, words + pairs);
	g_autofree uint64_t *before = g_new0(uint64_t, words + pairs);
	const struct reading reading = {
		.fd = bpf_map__fd(map),
		.cpus = bpf_map__type(map) == BPF_MAP_TYPE_HASH ? 1 : libbpf_num_possible_cpus(),
		.words = words,
		.pairs = pairs,
		.last = last,
		.reader = reader,
		.total = total,
		.before = before,
	};

	if (!take_many_at_once(&reading))
		take_one_by_one(&reading);
}

void sums_forget(struct bpf_map *map)
{
	uint64_t key[KEY_WORDS];
	int fd = bpf_map__fd(map), most = 1024;

	while (most-- && !bpf_map_get_next_key(fd, NULL, key) && !bpf_map_delete_elem(fd, key))
		;
}

void sums_each_call(struct bpf_map *map, GHashTable *last, const struct sums_reader *reader)
{
	sums_each(map, last, CALL_WORDS, CALL_PAIRS, reader);
}

void sums_each_place(struct bpf_map *map, GHashTable *last, const struct sums_reader *reader)
{
	int cpus = libbpf_num_possible_cpus(), cpu;
	g_autofree struct memtoll_call_place *places = g_new0(struct memtoll_call_place, cpus);
	uint64_t before[CALL_WORDS + CALL_PAIRS];
	uint32_t at;

	for (at = 0; at < CALL_PLACES; at++) {
		if (bpf_map_lookup_elem(bpf_map__fd(map), &at, places))
			continue;
		for (cpu = 0; cpu < cpus; cpu++) {
			const uint64_t row[KEY_WORDS] = { at, cpu };

			if (places[cpu].state == PLACE_TAKEN &&
			    reader->owner(reader->context, places[cpu].key.tgid) != OWNER_COMING &&
			    take_news(last, row, (uint64_t *)&places[cpu].call, before, CALL_WORDS,
				      CALL_PAIRS))
				reader->each(reader->context, &places[cpu].key,
					     (uint64_t *)&places[cpu].call);
		}
	}
}

void sums_free_places(struct bpf_map *map)
{
	size_t cpus = libbpf_num_possible_cpus();
	g_autofree struct memtoll_call_place *blank = g_new0(struct memtoll_call_place, cpus);
	uint32_t at;

	for (at = 0; at < CALL_PLACES; at++)
		bpf_map_update_elem(bpf_map__fd(map), &at, blank, BPF_ANY);
}

void sums_prepare_calls(struct bpf_map *calls, uint32_t tgid)
{
	g_autofree char *zero = g_malloc0(sizeof(struct memtoll_call) * libbpf_num_possible_cpus());
	struct memtoll_call_key key = { .tgid = tgid };

	for (key.fn = FN_MALLOC; key.fn < FN_COUNT; key.fn++)
		bpf_map_update_elem(bpf_map__fd(calls), &key, zero, BPF_NOEXIST);
}

/*
 * As many as the kernel keeps ready of small rows before it asks for more: init_refill_work() in
 * kernel/bpf/memalloc.c.
 */
#define READY_ROWS 32
#define READY_TRIES 50 /* of a millisecond each, for all maps of a CPU */

/* Dummy rows, made and deleted: their memory stays with this CPU. */
static void take_memory_here(struct bpf_map *map, int *tries)
{
	size_t cpus = libbpf_num_possible_cpus(), key_size = bpf_map__key_size(map);
	g_autofree char *zero = g_malloc0(cpus * ((bpf_map__value_size(map) + 7) / 8 * 8));
	g_autofree char *key = g_malloc(key_size);
	int fd = bpf_map__fd(map), err;
	uint32_t i, made;

	memset(key, 0xff, key_size);
	for (made = 0; made < READY_ROWS; made++) {
		memcpy(key, &made, sizeof(made));
		while ((err = bpf_map_update_elem(fd, key, zero, BPF_NOEXIST)) == -ENOMEM &&
		       *tries > 0) {
			(*tries)--;
			g_usleep(1000);
		}
		if (err)
			break;
	}
	for (i = 0; i < made; i++) {
		memcpy(key, &i, sizeof(i));
		bpf_map_delete_elem(fd, key);
	}
}

void sums_take_memory(struct bpf_object *object)
{
	struct bpf_map *map;
	cpu_set_t before, one;
	int cpu, tries;

	if (sched_getaffinity(0, sizeof(before), &before))
		return;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &before))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (sched_setaffinity(0, sizeof(one), &one))
			continue;
		tries = READY_TRIES;
		bpf_object__for_each_map (map, object)
			if (bpf_map__type(map) == BPF_MAP_TYPE_PERCPU_HASH)
				take_memory_here(map, &tries);
	}
	sched_setaffinity(0, sizeof(before), &before);
}
