/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rested.h: faults that have rested (bpf/state/fault_rest.bpf.h), for whom those that were seen have
 * not spoken: of processes that have ended, and of all once none rests any more.
 */
#ifndef MEMTOLL_RESTED_H
#define MEMTOLL_RESTED_H

#include <stdbool.h>

struct ledger;
struct memtoll_bpf;
struct targets;

/* Before the ledger is drained. over: at the end of a recording. */
void rested_settle(struct memtoll_bpf *bpf, struct targets *targets, struct ledger *ledger,
		   bool over);

#endif /* MEMTOLL_RESTED_H */
