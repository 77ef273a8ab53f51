/* SPDX-License-Identifier: GPL-2.0 */
/*
 * budget_executor.h: the governor at work: reads what probes cost, opens and closes their windows, lets the
 * tracepoints of system calls go and come back (syscall_idle.h), and notes for each slice how much of the
 * target's time each allocator function, read(2), and system calls were watched.
 */
#ifndef MEMTOLL_BUDGET_EXECUTOR_H
#define MEMTOLL_BUDGET_EXECUTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "probes/calibrate.h"
#include "recording/recording.h"
#include "targets/targets.h"

struct watch;

struct watch_config {
	struct memtoll_bpf *bpf;
	struct targets *targets;
	struct recording *recording;
	struct probes *probes;
	double limit;		/* as governor_new() has it; 0: no budget, all is watched always */
	bool command;		/* likewise */
	bool may_leave_calls;	/* system calls that tell nothing may go unwatched */
};

struct watch *watch_new(const struct watch_config *config, const struct calibration_result *prices);
void watch_free(struct watch *watch);

/* Counting is about to begin: all that is spent from now on is charged to the budget. */
void watch_begin(struct watch *watch);

/*
 * Do what is due. When to come again, on CLOCK_MONOTONIC; UINT64_MAX: never. Attaching blocks for
 * some 10 ms a process.
 */
uint64_t watch_step(struct watch *watch);

/* In a short window: what takes long had better wait. */
bool watch_in_window(const struct watch *watch);

/* Whether calls of the allocator have been missed yet. */
bool watch_has_missed(const struct watch *watch);

/* The slice ends now: what was watched so far belongs to it, what comes to the next. */
void watch_end_slice(struct watch *watch);

/* A window in which system calls are counted opens, or closes. */
void watch_window(struct watch *watch, bool open);
/* This one, or the next, closes by itself then: to be moved on while it is to stay open. */
void watch_window_until(struct watch *watch, uint64_t until_ns);
/* How many calls of the slice that has ended each one that its windows saw stands for. */
double watch_syscalls_scale(const struct watch *watch);

/* Write of the slice that has ended the functions that were not watched all the time. */
int watch_write(struct watch *watch);

#endif /* MEMTOLL_BUDGET_EXECUTOR_H */
