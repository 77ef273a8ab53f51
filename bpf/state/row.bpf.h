/* SPDX-License-Identifier: GPL-2.0 */
/*
 * row.bpf.h: tables of sums, a row for each key: one for all CPUs, and one on each where many add.
 *
 * A key begins with a row for all CPUs, of memory that is taken beforehand. One that is added to
 * often gets a row on each CPU, in a hash that takes its memory as it grows: for all rows that there
 * may be it would be too much on a machine of many CPUs. The first row stays for as long as the
 * process is there: userspace adds them up. Where there is no room for it the row is one per CPU from
 * the start.
 *
 * A row per CPU for each key from the start cost dearly where processes come by the hundreds, each
 * with rows of its own that are added to a few times: what the kernel keeps ready is filled up by an
 * interrupt to the CPU itself, some 15 us a row in a virtual machine. More than that is made by a
 * worker of the same CPU (pcpu_alloc_noprof() in mm/percpu.c), which does not run while a program of
 * real-time priority does, nor soon on a busy machine, nor succeeds on one short of memory.
 */
#ifndef MEMTOLL_ROW_BPF_H
#define MEMTOLL_ROW_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#define SUM_TABLE(name, rows, shared_rows, key_type, value_type) \
	struct {                                                 \
		__uint(type, BPF_MAP_TYPE_PERCPU_HASH);          \
		__uint(max_entries, rows);                       \
		__uint(map_flags, BPF_F_NO_PREALLOC);            \
		__type(key, key_type);                           \
		__type(value, value_type);                       \
	} name SEC(".maps");                                     \
	struct {                                                 \
		__uint(type, BPF_MAP_TYPE_HASH);                 \
		__uint(max_entries, shared_rows);                \
		__type(key, key_type);                           \
		__type(value, value_type);                       \
	} name##_shared SEC(".maps")

/* Of sums with one row for each process, which its threads add to now and then: for all CPUs alone. */
#define PROCESS_SUM_TABLE(name, rows, key_type, value_type) \
	struct {                                            \
		__uint(type, BPF_MAP_TYPE_HASH);            \
		__uint(max_entries, rows);                  \
		__type(key, key_type);                      \
		__type(value, value_type);                  \
	} name SEC(".maps")

/* One addition in so many, by chance, has a row made on each CPU: no row has room for a count. */
#define ROW_SHARED_ADDITIONS 64

static __always_inline void *row_made_in(void *table, const void *key, const void *zero)
{
	bpf_map_update_elem(table, key, zero, BPF_NOEXIST);
	return bpf_map_lookup_elem(table, key);
}

static __always_inline void *row_find(void *table, void *shared, const void *key, const void *zero)
{
	void *row = bpf_map_lookup_elem(table, key), *own;

	if (row)
		return row;
	row = bpf_map_lookup_elem(shared, key);
	if (!row || bpf_get_prandom_u32() % ROW_SHARED_ADDITIONS)
		return row;
	own = row_made_in(table, key, zero);
	return own ? own : row;
}

/* One that is not there yet; NULL: no room. */
static __always_inline void *row_make(void *table, void *shared, const void *key, const void *zero)
{
	void *row = row_made_in(shared, key, zero);

	return row ? row : row_made_in(table, key, zero);
}

static __always_inline void *row_get(void *table, void *shared, const void *key, const void *zero)
{
	void *row = row_find(table, shared, key, zero);

	return row ? row : row_make(table, shared, key, zero);
}

static __always_inline void *process_row_get(void *table, const void *key, const void *zero)
{
	void *row = bpf_map_lookup_elem(table, key);

	return row ? row : row_made_in(table, key, zero);
}

#endif /* MEMTOLL_ROW_BPF_H */
