/* SPDX-License-Identifier: GPL-2.0 */
/* refined.h: classes of faults and kinds of memory that only userspace distinguishes. */
#ifndef MEMTOLL_REFINED_H
#define MEMTOLL_REFINED_H

#include <linux/types.h>

#include "bpf/wire/faults.h"

/* A major swap fault from compressed memory, by its device. */
#define FAULT_SWAP_ZRAM FAULT_CLASSES

/* A file that is also mapped executable. */
#define AREA_LIBRARY AREA_COUNT

#endif /* MEMTOLL_REFINED_H */
