/* SPDX-License-Identifier: GPL-2.0 */
/* stack_writer.h: a stack becomes rows of the recording, native and Python frames together. */
#ifndef MEMTOLL_STACK_WRITER_H
#define MEMTOLL_STACK_WRITER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire/stacks.h"
#include "python/python.h"
#include "recording/recording.h"
#include "symbols/symbolize.h"

struct stack_writer {
	struct recording *recording;
	struct symbolizer *symbolizer;
	struct python *python;
	bool in_unknown;  /* the last stack ended in code made at run time that has no name */
	uint64_t unwoven; /* stacks whose Python frames could not be put in their places */
};

/* Name all frames of a stack and store it. 0, or -errno of the recording. */
int stack_write(struct stack_writer *writer, uint64_t id, const struct memtoll_stack *stack);

#endif /* MEMTOLL_STACK_WRITER_H */
