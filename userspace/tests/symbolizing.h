/* SPDX-License-Identifier: GPL-2.0 */
/* symbolizing.h: shows a process to a symbolizer as the tracer does. */
#ifndef MEMTOLL_TESTS_SYMBOLIZING_H
#define MEMTOLL_TESTS_SYMBOLIZING_H

#include "symbols/symbolize.h"

/* 0, or -errno of maps_read(). */
static inline int symbolizer_show(struct symbolizer *symbolizer, pid_t pid, bool replace)
{
	struct maps maps = { 0 };
	int err;

	err = maps_read(pid, &maps);
	if (err)
		maps.count = 0;
	symbolizer_show_maps(symbolizer, pid, &maps, replace);
	maps_free(&maps);
	return err;
}

#endif /* MEMTOLL_TESTS_SYMBOLIZING_H */
