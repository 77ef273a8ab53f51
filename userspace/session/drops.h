/* SPDX-License-Identifier: GPL-2.0 */
/* drops.h: who threw out the targets' pages, as rows of the recording. */
#ifndef MEMTOLL_DROPS_H
#define MEMTOLL_DROPS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire/sums.h"
#include "recording/recording.h"

/* names: the kernel's map of those that are not traced. 0, or -errno of the recording. */
int drops_write(struct recording *recording, int names, bool traced,
		const struct memtoll_drop_key *key, uint64_t pages);

#endif /* MEMTOLL_DROPS_H */
