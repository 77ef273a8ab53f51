/* SPDX-License-Identifier: GPL-2.0 */
/*
 * reads_settled.h: what programs read between windows, where system calls are seen in windows only,
 * the kernel counts until the next one (bpf/state/read_rest.bpf.h). Where none will come that is
 * known before.
 */
#ifndef MEMTOLL_READS_SETTLED_H
#define MEMTOLL_READS_SETTLED_H

#include <stdbool.h>
#include <stdint.h>

#include "budget/syscall_idle.h"
#include "probes/attach.h"

struct memtoll_bpf;

/* What the kernel has counted so far is in the rates. Not in a window: threads do it themselves. */
void settle_reads(struct memtoll_bpf *bpf);

/* As probes_rest_calls(); reads are settled where windows end. */
int rest_calls(struct memtoll_bpf *bpf, struct probes *probes, bool rest);

/*
 * Whether a program that seems to be idle has read between two windows: that is news, too. rates:
 * with what is known of it by then. True in a window: it will be asked again.
 */
bool has_read_between(struct memtoll_bpf *bpf, struct syscall_idle *idle, uint64_t now_ns,
		      struct memtoll_rates *rates);

#endif /* MEMTOLL_READS_SETTLED_H */
