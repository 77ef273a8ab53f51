/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEASURED_H
#define MEASURED_H

#include <stdbool.h>
#include <stdlib.h>

/* Times are held against their bounds only where the machine is quiet: test_measure_units.py. */
static inline bool times_count(void)
{
	return getenv("MEMTOLL_MEASURE");
}

#endif
