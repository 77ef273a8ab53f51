/* SPDX-License-Identifier: GPL-2.0 */
/*
 * events.h: the wire contract between the BPF programs and userspace, all of it.
 *
 * Headers of wire/ are included by both sides and include nothing but one another: who includes
 * them has __u8..__u64 already (vmlinux.h or <linux/types.h>). Enum values are explicit and
 * append-only. Times are nanoseconds of CLOCK_MONOTONIC (_ns) or of the thread's CPU clock
 * (_cpu_ns); sizes are bytes.
 */
#ifndef MEMTOLL_EVENTS_H
#define MEMTOLL_EVENTS_H

#include "cookies.h"
#include "faults.h"
#include "functions.h"
#include "pages.h"
#include "python_offsets.h"
#include "rates.h"
#include "records.h"
#include "stacks.h"
#include "sums.h"
#include "targets.h"
#include "unwind_rows.h"

#endif /* MEMTOLL_EVENTS_H */
