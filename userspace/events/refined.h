/* SPDX-License-Identifier: GPL-2.0 */
/* refined.h: what userspace knows of classes of faults and kinds of memory beyond the wire's. */
#ifndef MEMTOLL_REFINED_H
#define MEMTOLL_REFINED_H

#include <linux/types.h>
#include <stdbool.h>

#include "bpf/wire/faults.h"

/* A major swap fault from compressed memory, by its device. */
#define FAULT_SWAP_ZRAM FAULT_CLASSES

/* A file that is also mapped executable. */
#define AREA_LIBRARY AREA_COUNT

/* The first touch of a page, for which the kernel clears it: as table fault_class has it. */
static inline bool fault_clears(unsigned int fault_class)
{
	switch (fault_class) {
	case FAULT_ZERO:
	case FAULT_ZERO_HUGE:
	case FAULT_ZERO_MTHP:
	case FAULT_ZERO_UPGRADE:
	case FAULT_ZERO_POPULATED:
	case FAULT_SHARED_ZERO:
		return true;
	default:
		return false;
	}
}

#endif /* MEMTOLL_REFINED_H */
