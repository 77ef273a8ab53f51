/* SPDX-License-Identifier: GPL-2.0 */
/*
 * settings.bpf.h: single words through which userspace and programs talk while these run.
 */
#ifndef MEMTOLL_SETTINGS_BPF_H
#define MEMTOLL_SETTINGS_BPF_H

#include "vmlinux.h"

#include "wire/functions.h"

/* Raised by userspace once per slice: threads then emit their open run at their next event. */
extern volatile __u32 drain_epoch;
/*
 * Set when the recording is over: nothing is counted any more, whatever is still attached. Before,
 * while threads are stopped one after the other, STOPPING.
 */
extern volatile __u32 stopped;
extern volatile __u64 stopping_ns; /* when that began */
/* Raised by every change of a traced process's mappings: makes the cached areas stale. */
extern volatile __u32 area_generation;
/* Raised by every record of a block, made or freed: the owner of memory may be another now. */
extern volatile __u32 block_generation;
/* Set by userspace when it first meets an interpreter. */
extern volatile __u32 python_seen;
/* Calibrated: what of a call's duration is the probes' own, by function. */
extern volatile __u32 price_inside_ns[FN_COUNT];
extern volatile __u32 price_fault_ns;
/* Outliers still to be recorded in this slice, and the least they must take: by userspace. */
extern volatile __s64 outliers_left;
extern volatile __s64 preempted_left;
extern volatile __u64 outlier_floor_ns;
/*
 * There is more than one thread, or a call slept inside: futex calls are to be watched
 * (lock.bpf.c).
 */
extern volatile __u32 lock_suspected;
/* A fault has waited for a userfaultfd's handler: who wakes it is to be watched (handler.bpf.c). */
extern volatile __u32 handler_suspected;

#endif /* MEMTOLL_SETTINGS_BPF_H */
