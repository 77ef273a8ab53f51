/* SPDX-License-Identifier: GPL-2.0 */
/*
 * store_area.h: what memory is that code stores to and that is no block: a thread's stack, a
 * program's or library's own data, the heap. By the mappings of the process, which are read again
 * where an address is in none of them, a few times a second at most.
 */
#ifndef MEMTOLL_STORE_AREA_H
#define MEMTOLL_STORE_AREA_H

#include <linux/types.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/records.h"

/* As in table sample; "" where it is not known. Valid until store_areas_free(). */
struct store_area {
	const char *area;
	const char *name;
};

struct store_areas;

struct store_areas *store_areas_new(void);
void store_areas_free(struct store_areas *areas);

/* Where a sample stores, while the process is there. */
struct store_area store_areas_find(struct store_areas *areas, const struct memtoll_sample *sample);

/* The process has other memory, or none. */
void store_areas_forget(struct store_areas *areas, pid_t pid);

#endif /* MEMTOLL_STORE_AREA_H */
