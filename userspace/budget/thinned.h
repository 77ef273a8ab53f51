/* SPDX-License-Identifier: GPL-2.0 */
/* thinned.h: what was looked at and what was passed over in a slice (thinning.h), for the recording. */
#ifndef MEMTOLL_THINNED_H
#define MEMTOLL_THINNED_H

#include <stdint.h>

#include <linux/types.h>

#include "bpf/wire/rates.h"
#include "recording/recording.h"

struct thinned {
	uint64_t faults;
	uint64_t passed_faults; /* those that have rested with them */
	uint64_t rested_faults;
	uint64_t reads;
	uint64_t passed_reads; /* those that have rested with them */
	uint64_t rested_reads;
	uint64_t walked_calls;
	uint64_t held_calls;
	uint64_t drawn_maps;
	uint64_t passed_maps;
};

/* What was counted between two readings. */
void thinned_add(struct thinned *thinned, const struct memtoll_rates *before,
		 const struct memtoll_rates *now);

/* A row for each of which some were passed over. */
int thinned_write(const struct thinned *thinned, struct recording *recording);

#endif /* MEMTOLL_THINNED_H */
