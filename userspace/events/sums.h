/* SPDX-License-Identifier: GPL-2.0 */
/* sums.h: counters that the kernel side sums, and their differences from slice to slice. */
#ifndef MEMTOLL_SUMS_H
#define MEMTOLL_SUMS_H

#include <bpf/libbpf.h>
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Sum a per-CPU value: `words` 64-bit counters, then `pairs` of 32-bit ones, which may wrap. values
 * has both for one CPU after the other; total is of words + pairs.
 */
void sums_add_cpus(uint64_t *total, const uint64_t *values, size_t words, size_t pairs, int cpus);

/* What is known of the process that a row belongs to. */
enum sums_owner {
	OWNER_KNOWN,
	OWNER_GONE,   /* its rows that have not changed are deleted */
	OWNER_COMING, /* its fork is still to be told of: its rows wait for the next time */
};

/* Receives sums. Keys begin with a process's number. */
struct sums_reader {
	/* What a row has become since the last time, where it has. */
	void (*each)(void *context, const void *key, const uint64_t *delta);
	enum sums_owner (*owner)(void *context, uint32_t tgid);
	void *context;
};

/*
 * Walk a hash, per-CPU or one for all, whose keys have 16 bytes. last keeps what was there the last
 * time: key -> struct sparse_row, both freed by g_free.
 */
void sums_each(struct bpf_map *map, GHashTable *last, size_t words, size_t pairs,
	       const struct sums_reader *reader);

/* Counting begins anew. Of a map that few rows are added to meanwhile. */
void sums_forget(struct bpf_map *map);

/* Those of calls: values are struct memtoll_call. */
void sums_each_call(struct bpf_map *map, GHashTable *last, const struct sums_reader *reader);

/* The sums of calls that have places (struct memtoll_call_place), CPU by CPU. */
void sums_each_place(struct bpf_map *map, GHashTable *last, const struct sums_reader *reader);

/* All places are free, and their sums 0. No program may be running. */
void sums_free_places(struct bpf_map *map);

/*
 * Rows for the calls of a process whose place finds room in neither table: made in advance, while
 * there is some.
 */
void sums_prepare_calls(struct bpf_map *calls, uint32_t tgid);

/*
 * Have the kernel keep memory ready for the first rows of every hash per CPU, on each CPU that we
 * may run on. Where the tables for all CPUs are full (bpf/state/row.bpf.h) a row that a program makes
 * has to come from what is ready, and more of it is made without waiting: on a busy machine it fails
 * for some milliseconds (pcpu_alloc_noprof() in mm/percpu.c leaves it to a worker), and all that
 * begins then would be lost.
 */
void sums_take_memory(struct bpf_object *object);

#endif /* MEMTOLL_SUMS_H */
