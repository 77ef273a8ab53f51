/* SPDX-License-Identifier: GPL-2.0 */
/* advised_writer.h: what became of advice to let memory go, as rows of the recording. */
#ifndef MEMTOLL_ADVISED_WRITER_H
#define MEMTOLL_ADVISED_WRITER_H

#include <stdint.h>

#include "recording/recording.h"

struct advised;

/* 0, or -errno of the recording. */
int advised_write(struct advised *advised, struct recording *recording,
		  void (*want_stack)(void *context, uint64_t stack_id), void *context);

#endif /* MEMTOLL_ADVISED_WRITER_H */
