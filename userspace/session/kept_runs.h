/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kept_runs.h: sweeps that a slice keeps one by one, for pictures; all are in the sums. In long
 * recordings no more than a picture can show: some 60 MB, then at most 600 MB a day.
 */
#ifndef MEMTOLL_KEPT_RUNS_H
#define MEMTOLL_KEPT_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire/records.h"

struct kept_runs;

struct kept_run {
	struct memtoll_run run;
	uint64_t allocated_stack;
	uint8_t allocated_fn;
};

struct kept_runs *kept_runs_new(void);
void kept_runs_free(struct kept_runs *runs);

/* False: one is not kept, this or an earlier one. */
bool kept_runs_add(struct kept_runs *runs, const struct kept_run *run);

/* Those of the slice, which then are no longer kept. */
void kept_runs_drain(struct kept_runs *runs,
		     void (*each)(void *context, const struct kept_run *run), void *context);

#endif /* MEMTOLL_KEPT_RUNS_H */
