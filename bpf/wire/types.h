/* SPDX-License-Identifier: GPL-2.0 */
/*
 * types.h: __u8..__u64 for the headers of wire/, which both sides include: a BPF program has them
 * from vmlinux.h, which cannot stand beside the kernel's own header.
 *
 * Of all these headers: enum values are explicit and append-only. Times are nanoseconds of
 * CLOCK_MONOTONIC (_ns) or of the thread's CPU clock (_cpu_ns); sizes are bytes.
 */
#ifndef MEMTOLL_TYPES_H
#define MEMTOLL_TYPES_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#endif /* MEMTOLL_TYPES_H */
