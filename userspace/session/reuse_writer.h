/* SPDX-License-Identifier: GPL-2.0 */
/* reuse_writer.h: how far apart uses of the same block are, as rows of the recording. */
#ifndef MEMTOLL_REUSE_WRITER_H
#define MEMTOLL_REUSE_WRITER_H

#include <linux/types.h>
#include <stdint.h>

#include "ledger/reuse_distance.h"
#include "recording/recording.h"

/* Cumulative since the start, in place of what was written before. file 0: all files. */
int reuse_write(struct recording *recording, const char *subject, int64_t file,
		const struct reuse *reuse);

#endif /* MEMTOLL_REUSE_WRITER_H */
