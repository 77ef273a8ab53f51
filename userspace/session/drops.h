/* SPDX-License-Identifier: GPL-2.0 */
/* drops.h: who threw out the targets' pages, as rows of the recording. */
#ifndef MEMTOLL_DROPS_H
#define MEMTOLL_DROPS_H

#include <linux/types.h>
#include <stdint.h>

#include "bpf/wire/sums.h"
#include "recording/recording.h"

struct memtoll_bpf;
struct targets;

/* Of who asked for it; 0: nobody did. */
uint64_t drops_stack(const struct memtoll_drop_key *key);

/* 0, or -errno of the recording. */
int drops_write(struct recording *recording, struct memtoll_bpf *bpf, struct targets *targets,
		const struct memtoll_drop_key *key, uint64_t pages);

#endif /* MEMTOLL_DROPS_H */
