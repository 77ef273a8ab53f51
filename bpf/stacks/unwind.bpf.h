/* SPDX-License-Identifier: GPL-2.0 */
/* unwind.bpf.h: the caller of a frame, by call frame information. */
#ifndef MEMTOLL_UNWIND_BPF_H
#define MEMTOLL_UNWIND_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "state/walks.bpf.h"
#include "wire/unwind_rows.h"

struct unwind_chunk {
	union {
		__u32 index[UNWIND_INDEX_ENTRIES];
		struct memtoll_unwind_row rows[UNWIND_CHUNK_ROWS];
		struct memtoll_unwind_mapping mappings[UNWIND_CHUNK_MAPPINGS];
	};
};

/* Tables of modules and of processes: arrays of chunks, made by userspace (unwind_load.c). */
struct unwind_tables_map {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNWIND_TABLES);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
};
extern struct unwind_tables_map unwind_tables SEC(".maps");

/*
 * Where an address of the mapping that was found last is, the same for all processes: a module keeps
 * its table for good. Not 0, as no module has the table 0.
 */
static __always_inline __u64 unwind_place(const struct unwind *walk, __u64 address)
{
	return (__u64)walk->table << 32 | (__u32)(address - walk->bias);
}

int unwind_step(struct unwind *walk);
int unwind_mapping(struct unwind *walk, __u64 address);
int unwind_stopped(struct unwind *walk);
__u32 unwind_rule(__u32 table_id, __u32 pc);

#endif /* MEMTOLL_UNWIND_BPF_H */
