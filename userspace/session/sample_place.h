/* SPDX-License-Identifier: GPL-2.0 */
/* sample_place.h: what a CPU sample was doing. */
#ifndef MEMTOLL_SAMPLE_PLACE_H
#define MEMTOLL_SAMPLE_PLACE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire/records.h"
#include "host/kallsyms.h"

enum place {
	PLACE_MEMSET,
	PLACE_CALLOC_MEMSET,
	PLACE_ALLOCATOR,
	PLACE_FAULT,
	PLACE_MAP,
	PLACE_READ,
	PLACE_PROBE,
	PLACE_KERNEL,
	PLACE_USER,
	PLACE_COPY,
	/* In system calls that are not watched: faults taken for the program, and pages freed. */
	PLACE_POPULATE,
	PLACE_PAGES,
	/* And memory that is there already, filled with zeros. */
	PLACE_CLEAR
};

/* What the code at a sample in user mode stores. */
enum stored { STORED_NOTHING, STORED_ZERO, STORED_OTHER, STORED_COPY };

/* Column place of table sample. */
const char *sample_place_name(enum place place);

/* Functions of the kernel that say what a sample in it does, by kind. */
enum kernel_code {
	CODE_FAULT = 0,
	CODE_ENTRY = 1,
	CODE_PROBE = 3,
	CODE_NO_CLEAR = 11,
	CODE_PAGES = 15,
	CODE_CLEAR = 24,
	CODE_CLEAR_PAGE = 26,
	CODE_COUNT = 30
};

struct sample_judge {
	struct kernel_function code[CODE_COUNT];
};

void sample_judge_prepare(struct sample_judge *judge);

/*
 * By all frames of a kernel stack: without NMIs leaves pile up where interrupts are enabled again.
 */
enum place sample_place(const struct sample_judge *judge, const struct memtoll_sample *sample,
			enum stored stored, bool in_allocator);

/* Whether the kernel is clearing a page: with interrupts on, so that samples fall where they belong. */
bool sample_clears_page(const struct sample_judge *judge, const struct memtoll_sample *sample);

/* The allocator's function by its name, as symbol tables have it; FN_NONE for others. */
unsigned int sample_fn_of_symbol(const char *symbol);

#endif /* MEMTOLL_SAMPLE_PLACE_H */
