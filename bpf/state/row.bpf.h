/* SPDX-License-Identifier: GPL-2.0 */
/*
 * row.bpf.h: tables of sums, a row for each key: a hash per CPU and a spare.
 *
 * A hash per CPU takes its memory as it grows: for all rows that there may be it would be too much
 * on a machine of many CPUs. A new row comes from what the kernel keeps ready; more is made by a
 * worker of the same CPU (pcpu_alloc_noprof() in mm/percpu.c), which does not run while a program
 * of real-time priority does, nor soon on a busy machine, nor succeeds on one short of memory. The
 * spare's memory is taken beforehand, one row for all CPUs. A key may come to be in both: userspace
 * adds them up.
 */
#ifndef MEMTOLL_ROW_BPF_H
#define MEMTOLL_ROW_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#define SUM_TABLE(name, rows, spare_rows, key_type, value_type) \
	struct {                                                \
		__uint(type, BPF_MAP_TYPE_PERCPU_HASH);         \
		__uint(max_entries, rows);                      \
		__uint(map_flags, BPF_F_NO_PREALLOC);           \
		__type(key, key_type);                          \
		__type(value, value_type);                      \
	} name SEC(".maps");                                    \
	struct {                                                \
		__uint(type, BPF_MAP_TYPE_HASH);                \
		__uint(max_entries, spare_rows);                \
		__type(key, key_type);                          \
		__type(value, value_type);                      \
	} name##_spare SEC(".maps")

/*
 * Of sums with one row for each process, which its threads add to now and then: one row for all CPUs,
 * of memory that is taken beforehand. Where processes come by the hundreds each has one made, and
 * what the kernel keeps ready of a hash per CPU is then filled up again and again by an interrupt to
 * the CPU itself: 15 us at the end of each process in a virtual machine.
 */
#define PROCESS_SUM_TABLE(name, rows, key_type, value_type) \
	struct {                                            \
		__uint(type, BPF_MAP_TYPE_HASH);            \
		__uint(max_entries, rows);                  \
		__type(key, key_type);                      \
		__type(value, value_type);                  \
	} name SEC(".maps")

static __always_inline void *row_find(void *table, void *spare, const void *key)
{
	void *row = bpf_map_lookup_elem(table, key);

	return row ? row : bpf_map_lookup_elem(spare, key);
}

/* One that is not there yet; NULL: no room. */
static __always_inline void *row_make(void *table, void *spare, const void *key, const void *zero)
{
	void *row;

	bpf_map_update_elem(table, key, zero, BPF_NOEXIST);
	row = bpf_map_lookup_elem(table, key);
	if (row)
		return row;
	bpf_map_update_elem(spare, key, zero, BPF_NOEXIST);
	return bpf_map_lookup_elem(spare, key);
}

static __always_inline void *row_get(void *table, void *spare, const void *key, const void *zero)
{
	void *row = row_find(table, spare, key);

	return row ? row : row_make(table, spare, key, zero);
}

static __always_inline void *process_row_get(void *table, const void *key, const void *zero)
{
	void *row = bpf_map_lookup_elem(table, key);

	if (row)
		return row;
	bpf_map_update_elem(table, key, zero, BPF_NOEXIST);
	return bpf_map_lookup_elem(table, key);
}

#endif /* MEMTOLL_ROW_BPF_H */
