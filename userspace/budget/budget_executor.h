/* SPDX-License-Identifier: GPL-2.0 */
/*
 * budget_executor.h: carries out what the governor decides: reads what probes cost, begins and ends
 * their windows, detaches and attaches the tracepoints of system calls (syscall_idle.h), and
 * records for each slice how much of the target's time each allocator function, read(2), and system
 * calls were watched.
 */
#ifndef MEMTOLL_BUDGET_EXECUTOR_H
#define MEMTOLL_BUDGET_EXECUTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "probes/calibrate.h"
#include "recording/recording.h"
#include "targets/targets.h"

struct budget;

struct budget_config {
	struct memtoll_bpf *bpf;
	struct targets *targets;
	struct recording *recording;
	struct probes *probes;
	double limit;	      /* as governor_new() has it; 0: no budget, all is watched always */
	bool command;	      /* as governor_new() has it, too */
	bool may_leave_calls; /* system calls of an idle program may go unwatched */
};

struct budget *budget_new(const struct budget_config *config,
			  const struct calibration_result *prices);
void budget_free(struct budget *budget);

/* Counting is about to begin: all that is spent from now on is charged to the budget. */
void budget_begin(struct budget *budget);

/*
 * Do what is due. When to come again, on CLOCK_MONOTONIC; UINT64_MAX: never. Attaching blocks for
 * some 10 ms a process.
 */
uint64_t budget_step(struct budget *budget);

/* In a short window: postpone what takes long. */
bool budget_in_window(const struct budget *budget);

/* Whether faults have been passed over yet. */
bool budget_has_thinned(const struct budget *budget);

/* The slice ends now: what was watched so far belongs to it, what comes to the next. */
void budget_end_slice(struct budget *budget);
/* The last one does, and probes are about to be detached. */
void budget_end(struct budget *budget);

/* A window in which system calls are counted begins, or ends. */
void budget_window(struct budget *budget, bool open);
/* This one, or the next, ends by itself then: to be moved on while it is to go on. */
void budget_window_until(struct budget *budget, uint64_t until_ns);
/* How many calls of the slice that has ended each one that its windows saw stands for. */
double budget_syscalls_scale(const struct budget *budget);

/* Allocator calls of this process were seen in the slice that has ended. */
void budget_called(struct budget *budget, pid_t pid);

/* For the slice that has ended, write the functions that were not watched all of it. */
int budget_write(struct budget *budget);

#endif /* MEMTOLL_BUDGET_EXECUTOR_H */
