/* SPDX-License-Identifier: GPL-2.0 */
/* reads.h: files that the targets read: which, how much, and how often the same part again. */
#ifndef MEMTOLL_READS_H
#define MEMTOLL_READS_H

#include <bpf/libbpf.h>
#include <linux/types.h>

#include "bpf/wire/records.h"
#include "events/sums.h"
#include "recording/recording.h"

struct reads;

/* sums, shared: the kernel's maps of file_reads, per CPU and for all (row.bpf.h). */
struct reads *reads_new(struct recording *recording, struct bpf_map *sums, struct bpf_map *shared);
void reads_free(struct reads *reads);

/* Records of the ring buffer: where a file is, and a run of reads of it. */
void reads_path(struct reads *reads, const struct memtoll_path *path);
void reads_run(struct reads *reads, const struct memtoll_read *run);

/* A run of faults on anonymous pages, while there is swap: how far apart their swap-ins are. */
void reads_fault(struct reads *reads, const struct memtoll_run *run);

typedef void read_fn(void *context, const struct file_read_fact *fact);
typedef enum sums_owner owner_fn(void *context, uint32_t tgid);

/*
 * Give out the kernel's sums as differences to the last call, and write what is known of the files.
 * 0, or -errno of the recording.
 */
int reads_commit(struct reads *reads, owner_fn *owner, read_fn *on_read, void *context);

#endif /* MEMTOLL_READS_H */
